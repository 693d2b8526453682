//go:build linux

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hwsagent/internal/panics"
	"hwsagent/probes"
)

// plantBtrfs is a file system of two devices, numbered 1 and 3, as the kernel answers for it by ioctl. The numbers of the requests
// are those that strace shows of Debian's `btrfs device stats` on amd64.
type plantBtrfs struct {
	id      byte           // each byte of the UUID
	refuse  map[uint]error // by request
	badLast uint64         // the highest number, instead of 3
	asked   map[uint]int
}

func (p *plantBtrfs) ask(_ int, request uint, argument []byte) error {
	const fsInfo, devInfo, devStats = 0x8400941f, 0xd000941e, 0xc4089434
	p.asked[request]++
	if err := p.refuse[request]; err != nil {
		return err
	}
	put := func(at int, v uint64) { binary.NativeEndian.PutUint64(argument[at:], v) }
	id := binary.NativeEndian.Uint64(argument)
	if request != fsInfo && id != 1 && id != 3 {
		return unix.ENODEV
	}
	switch request {
	case fsInfo:
		put(0, max(3, p.badLast))
		put(8, 2)
		copy(argument[16:32], strings.Repeat(string([]byte{p.id}), 16))
	case devInfo:
		copy(argument[8:24], strings.Repeat(string([]byte{byte(id)}), 16))
		put(24, 100*id)
		put(32, 1000*id)
		copy(argument[3072:], fmt.Sprintf("/dev/mapper/sd%d", id))
	case devStats:
		if n := binary.NativeEndian.Uint64(argument[8:]); n != 5 {
			return fmt.Errorf("asked for %d figures", n)
		}
		for i := range 5 {
			put(24+8*i, 10*id+uint64(i))
		}
	default:
		return unix.ENOTTY
	}
	return nil
}

// TestMissingBtrfsDevice: the kernel gives no path for a device that is missing, so it has no name; its UUID tells which it is.
func TestMissingBtrfsDevice(t *testing.T) {
	plant := plantBtrfs{id: 0x22, asked: map[uint]int{}}
	d, err := btrfsDeviceOf(-1, 3, func(fd int, request uint, argument []byte) error {
		err := plant.ask(fd, request, argument)
		if request == 0xd000941e {
			clear(argument[3072:])
		}
		return err
	})
	if err != nil || d.name != "" || d.uuid != strings.Repeat("03", 16) || d.size != 3000 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestBtrfsDevices: errors, sizes and UUIDs of devices come by ioctl, and where that is refused, or its mount point may not be
// opened, sizes come from sysfs.
func TestBtrfsDevices(t *testing.T) {
	c := fixtures(t)
	const uuid, other = "0abb23a9-579b-43e6-ad30-227ef47fcb9d", "7f07c59f-6136-449c-ab87-e1cf2328731b"
	// The fixtures' file system gets a UUID that one byte makes.
	const mine = "22222222-2222-2222-2222-222222222222"
	if err := os.Rename(filepath.Join(c.SysPath, "fs/btrfs", uuid), filepath.Join(c.SysPath, "fs/btrfs", mine)); err != nil {
		t.Fatal(err)
	}
	write(t, c.SysPath, map[string]string{"fs/btrfs/" + mine + "/metadata_uuid": mine + "\n"})
	root := t.TempDir()
	for _, dir := range []string{"data", "again"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mounts := "1 1 0:1 / / rw - ext4 /dev/sda rw\n" +
		"2 1 0:40 / /not/there rw - btrfs /dev/mapper/sd1 rw\n" +
		"3 1 0:40 / /data rw - btrfs /dev/mapper/sd1 rw\n" +
		"4 1 0:40 / /again rw - btrfs /dev/mapper/sd1 rw\n"
	write(t, c.ProcPath, map[string]string{"1/mountinfo": mounts})
	const fsInfo, devInfo, devStats = 0x8400941f, 0xd000941e, 0xc4089434
	one, three := strings.Repeat("01", 16), strings.Repeat("03", 16)
	device := func(id, more string) string {
		return fmt.Sprintf("{btrfs_dev_uuid=%q,device=\"sd%c\",%suuid=%q}", id, id[1], more, mine)
	}
	for name, x := range map[string]struct {
		plant   plantBtrfs
		answers bool
		infos   int
	}{
		"answers":               {plantBtrfs{id: 0x22}, true, 1},
		"many free numbers":     {plantBtrfs{id: 0x22, badLast: 1 << 60}, true, 1},
		"refuses":               {plantBtrfs{id: 0x22, refuse: map[uint]error{fsInfo: unix.ENOTTY}}, false, 2},
		"refuses its errors":    {plantBtrfs{id: 0x22, refuse: map[uint]error{devStats: unix.EPERM}}, false, 2},
		"another file system":   {plantBtrfs{id: 0x33}, false, 1},
		"device goes meanwhile": {plantBtrfs{id: 0x22, refuse: map[uint]error{devInfo: unix.EIO}}, false, 2},
	} {
		x.plant.asked = map[uint]int{}
		e := &environment{settings: &settings{Config: c, limit: 20 * time.Second}, panics: panics.New("test", quiet())}
		e.RootFSPath = root + "/"
		r := probes.NewRound(0)
		if err := newBtrfsAsking(e, x.plant.ask).read(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s := ofRound(t, r)
		want := map[string]float64{
			"node_btrfs_device_size_bytes" + device(one, ""):     1000,
			"node_btrfs_device_size_bytes" + device(three, ""):   3000,
			"node_btrfs_device_unused_bytes" + device(three, ""): 2700,
		}
		for i, kind := range []string{"write", "read", "flush", "corruption", "generation"} {
			want["node_btrfs_device_errors_total"+device(three, fmt.Sprintf("type=%q,", kind))] = float64(30 + i)
		}
		for key, v := range want {
			if got, there := s.values[key]; there != x.answers || there && got != v {
				t.Errorf("%s: %s is %v (%v)", name, key, got, there)
			}
		}
		sysfs := 0
		for key := range s.values {
			if strings.HasPrefix(key, "node_btrfs_device_size_bytes{device=") && strings.Contains(key, mine) {
				sysfs++
			}
		}
		if (sysfs == 0) != x.answers {
			t.Errorf("%s: %d sizes are from sysfs", name, sysfs)
		}
		if n := x.plant.asked[fsInfo]; n != x.infos {
			t.Errorf("%s: asked %d mount points", name, n)
		}
		if v := s.values[`node_btrfs_info{label="fixture",uuid="`+other+`"}`] + s.values[`node_btrfs_info{uuid="`+other+`"}`]; v != 1 {
			t.Errorf("%s: the other file system has gone", name)
		}
	}
}

// TestBcachefs has one file system with each figure, and one whose file is not as the kernel writes it, which costs itself alone.
func TestBcachefs(t *testing.T) {
	sys := t.TempDir()
	const uuid, bad = "fs/bcachefs/1b2f/", "fs/bcachefs/dead/"
	write(t, sys, map[string]string{
		uuid + "btree_cache_size":        "2.0M\n",
		uuid + "compression_stats":       "type  compressed  uncompressed  average extent size\nzstd:  1.0k  4.0k  64k\n",
		uuid + "errors":                  "ptr_to_missing 4 1700000000\n",
		uuid + "counters/bucket-discard": "since mount: 1\nsince filesystem creation: 12\n",
		uuid + "btree_write_stats":       "  nr  size\ninitial:  7  2.0k\n",
		uuid + "dev-0/label":             "ssd.a\n",
		uuid + "dev-0/state":             "rw\n",
		uuid + "dev-0/bucket_size":       "512k\n",
		uuid + "dev-0/nbuckets":          "1000\n",
		uuid + "dev-0/durability":        "1\n",
		uuid + "dev-0/io_done":           "read:\n  user : 4096\nwrite:\n  btree : 8192\n",
		uuid + "dev-0/io_errors":         "IO errors since filesystem creation\n  read: 3\n  checksum: 1\nIO errors since 1 d ago\n  read: 0\n",
		bad + "errors":                   "ptr_to_missing many\n",
	})
	r := probes.NewRound(0)
	err := mustNew(t, Config{SysPath: sys, Collectors: []string{"bcachefs"}}).Collect(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "bcachefs: read statistics of "+sys+"/fs/bcachefs/dead: ") {
		t.Errorf("the error is %v", err)
	}
	s := ofRound(t, r)
	for key := range s.values {
		if strings.HasPrefix(key, "node_scrape") {
			delete(s.values, key)
		}
	}
	diffValues(t, map[string]float64{
		`node_bcachefs_info{uuid="1b2f"}`:                                                                      1,
		`node_bcachefs_btree_cache_size_bytes{uuid="1b2f"}`:                                                    2 << 20,
		`node_bcachefs_compression_compressed_bytes{algorithm="zstd",uuid="1b2f"}`:                             1024,
		`node_bcachefs_compression_uncompressed_bytes{algorithm="zstd",uuid="1b2f"}`:                           4096,
		`node_bcachefs_errors_total{error_type="ptr_to_missing",uuid="1b2f"}`:                                  4,
		`node_bcachefs_bucket_discard_total{uuid="1b2f"}`:                                                      12,
		`node_bcachefs_btree_writes_total{type="initial",uuid="1b2f"}`:                                         7,
		`node_bcachefs_btree_write_average_size_bytes{type="initial",uuid="1b2f"}`:                             2048,
		`node_bcachefs_device_info{device="0",label="ssd.a",state="rw",uuid="1b2f"}`:                           1,
		`node_bcachefs_device_bucket_size_bytes{device="0",uuid="1b2f"}`:                                       512 << 10,
		`node_bcachefs_device_buckets{device="0",uuid="1b2f"}`:                                                 1000,
		`node_bcachefs_device_durability{device="0",uuid="1b2f"}`:                                              1,
		`node_bcachefs_device_io_done_bytes_total{data_type="user",device="0",operation="read",uuid="1b2f"}`:   4096,
		`node_bcachefs_device_io_done_bytes_total{data_type="btree",device="0",operation="write",uuid="1b2f"}`: 8192,
		`node_bcachefs_device_io_errors_total{device="0",type="read",uuid="1b2f"}`:                             3,
		`node_bcachefs_device_io_errors_total{device="0",type="checksum",uuid="1b2f"}`:                         1,
	}, s.values)
	if _, err := newBcachefs(&environment{settings: &settings{Config: Config{SysPath: t.TempDir()}, limit: time.Second}, panics: panics.New("test", quiet())}).(*once).query(); !errors.Is(err, errAbsent) {
		t.Errorf("without the kernel's module: %v", err)
	}
}
