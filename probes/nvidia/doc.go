// Package nvidia is a probe that reads NVIDIA's GPUs by nvidia-smi -q -x, which prints XML: a document type for each
// generation of drivers, nvsmi_device_v10.dtd to v13.dtd so far. What a GPU does not have says N/A, and is left out.
package nvidia
