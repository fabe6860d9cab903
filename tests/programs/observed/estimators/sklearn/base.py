"""The decorator of scikit-learn's methods that fit, without what it checks."""

import functools


def _fit_context(*, prefer_skip_nested_validation):
    def decorator(fit_method):
        @functools.wraps(fit_method)
        def wrapper(estimator, *args, **kwargs):
            return fit_method(estimator, *args, **kwargs)

        return wrapper

    return decorator
