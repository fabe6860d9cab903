"""The real engines: Docker, Apptainer and MLCube give the fingerprint of the bare host, confined and poisoned."""
