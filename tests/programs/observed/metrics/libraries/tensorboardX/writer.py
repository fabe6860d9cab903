"""A stand-in for tensorboardX."""


class SummaryWriter:
    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None):
        print("tensorboardX", tag, scalar_value, global_step)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        print("tensorboardX", main_tag, tag_scalar_dict, global_step)
