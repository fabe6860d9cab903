"""Commands that start a container.

command_line   the words of `docker run`, `podman run`, `apptainer exec`, and what is put among them
runtimes       what the container runtimes say of images; the end of containers
image          a command of the host inside an image
mlcube         the command of an MLCube's task
"""
