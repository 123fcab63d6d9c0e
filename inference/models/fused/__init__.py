"""Llama-shaped decoder layers in few calls, over the weights of a loaded model.

`network` is the forward, `recognise` says which models have this shape and takes their weights, `linears` are their
matrices as they are multiplied, and `kernels` are the small operations between.
"""
