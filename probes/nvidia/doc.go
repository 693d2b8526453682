// Package nvidia is a probe that reads NVIDIA's GPUs by nvidia-smi -q -x, which prints XML: a document type for each
// generation of drivers, nvsmi_device_v10.dtd to v13.dtd so far. Values that a GPU does not have are N/A, and left out.
// NVIDIA's library NVML would need cgo, which no build of the agent has.
package nvidia
