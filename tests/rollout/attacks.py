"""Attacks that a policy might try from inside, each a line or a few. None harms a host that it gets through to.

``SOURCE`` is a policy that carries out all of them in ``reset`` and prints ``name → what happened`` as JSON. An attack
*got through* when its code returns True. ``@CANARY@`` is replaced by the places and process ids to attack.
"""

from __future__ import annotations

SOURCE = r'''
import ctypes, errno, json, os, resource, signal, socket, struct, sys, threading, time

CAN = json.loads(r"""@CANARY@""")
HOST = CAN["host"]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ATTACKS = {}


def attack(act):
    ATTACKS[act.__name__] = act
    return act


def call(number, *arguments):
    """A raw system call (x86_64); whether the kernel carried it out, or refused only its nonsense arguments."""
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    code = ctypes.get_errno()
    if result >= 0 or code not in (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ESRCH):
        return True
    raise OSError(code, os.strerror(code))


def vector():
    vector.kept = ctypes.create_string_buffer(16)
    return (ctypes.c_void_p * 2)(ctypes.addressof(vector.kept), 16)


# the network
@attack
def tcp_connect(): return socket.create_connection(("127.0.0.1", CAN["port"]), 1).recv(8) == b"canary"
@attack
def tcp_listen(): s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); return True
@attack
def udp_send(): return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", CAN["port"])) == 1
@attack
def unix_path_connect(): s = socket.socket(socket.AF_UNIX); s.connect(CAN["unix"]); return True
@attack
def unix_abstract_connect(): s = socket.socket(socket.AF_UNIX); s.connect(CAN["abstract"]); return True
@attack
def netlink(): socket.socket(socket.AF_NETLINK, socket.SOCK_RAW); return True
@attack
def raw_socket(): socket.socket(socket.AF_PACKET, socket.SOCK_RAW); return True
@attack
def vsock(): call(41, 40, 1, 0); return True
@attack
def io_uring_instead_of_calls(): return call(425, 8, ctypes.create_string_buffer(256))

# the host's files
@attack
def read_passwd(): return "root" in open("/etc/passwd").read()
@attack
def read_home(): return open(CAN["secret"]).read() == "canary"
@attack
def read_through_link(): return open(CAN["link"]).read() == "canary"
@attack
def list_root(): return "var" in os.listdir("/")
@attack
def list_run_folder(): return bool(os.listdir(CAN["folder"]))
@attack
def list_above(): return bool(os.listdir(os.path.dirname(CAN["folder"])))
@attack
def read_resolv(): open("/etc/resolv.conf").read(); return True
@attack
def list_sys(): return bool(os.listdir("/sys/class"))
@attack
def read_other_disk(): open("/dev/mem", "rb"); return True
@attack
def write_run_folder(): open(CAN["folder"] + "/evil", "w").write("x"); return True
@attack
def write_tmp(): open("/tmp/evotui-evil", "w").write("x"); return True
@attack
def write_shm(): open("/dev/shm/evotui-evil", "w").write("x"); return True
@attack
def write_library(): open(os.path.dirname(os.__file__) + "/evil.py", "w").write("x"); return True
@attack
def rename_canary(): os.rename(CAN["folder"] + "/moved", CAN["folder"] + "/moved-away"); return True
@attack
def link_canary(): os.link(CAN["secret"], CAN["folder"] + "/hard"); return True
@attack
def chmod_canary(): os.chmod(CAN["folder"], 0o777); return True
@attack
def chown_canary(): os.chown(CAN["folder"], 0, 0); return True
@attack
def touch_canary(): os.utime(CAN["folder"]); return True
@attack
def xattr_canary(): os.setxattr(CAN["folder"], "user.evil", b"x"); return True
@attack
def open_by_handle(): return call(304, -100, ctypes.create_string_buffer(64), 0)
@attack
def make_device(): os.mknod(CAN["folder"] + "/dev", 0o600 | 0o020000, os.makedev(1, 3)); return True
@attack
def watch_files(): return call(300, 0, 0)

# other processes
@attack
def see_host(): return os.path.exists("/proc/%d" % HOST)
@attack
def read_host_environment(): return bool(open("/proc/%d/environ" % HOST, "rb").read())
@attack
def read_worker_memory(): open("/proc/%d/mem" % CAN["worker"], "rb"); return True
@attack
def list_host_files(): return bool(os.listdir("/proc/%d/fd" % HOST))
@attack
def signal_host(): os.kill(HOST, 0); return True
@attack
def signal_worker(): os.kill(CAN["worker"], 0); return True
@attack
def thread_signal_host(): return call(234, HOST, HOST, 0)
@attack
def queue_signal_host(): return call(129, HOST, 0, ctypes.create_string_buffer(128))
@attack
def ptrace_host(): return call(101, 0x4206, CAN["worker"], 0, 0) and call(101, 17, CAN["worker"], 0, 0)
@attack
def read_process(): v = vector(); return call(310, HOST, v, 1, v, 1, 0)
@attack
def write_process(): v = vector(); return call(311, HOST, v, 0, v, 0, 0)
@attack
def compare_process(): return call(312, HOST, os.getpid(), 0, 0, 0)
@attack
def pidfd_host(): return call(434, HOST, 0)
@attack
def limit_host(): resource.prlimit(HOST, resource.RLIMIT_CORE); return True
@attack
def pin_host(): os.sched_setaffinity(HOST, os.sched_getaffinity(0)); return True
@attack
def renice_host(): os.setpriority(os.PRIO_PROCESS, HOST, os.getpriority(os.PRIO_PROCESS, 0)); return True
@attack
def schedule_host(): os.sched_setscheduler(HOST, os.SCHED_OTHER, os.sched_param(0)); return True
@attack
def move_pages(): return call(279, HOST, 0, 0, 0, 0, 0)

# new processes
@attack
def fork():
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0); return True
@attack
def clone3(): return call(435, ctypes.create_string_buffer(88), 8)
@attack
def spawn(): os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0); return True
@attack
def shell(): return os.system("true") == 0
@attack
def execute(): return call(59, 0, 0, 0)
@attack
def execute_at(): return call(322, -1, 0, 0, 0, 0)
@attack
def leave_session(): os.setsid(); return True
@attack
def leave_group(): os.setpgid(0, 0); return os.getpgid(0) != os.getpgid(os.getpid())
@attack
def survive_parent(): return libc.prctl(1, 0, 0, 0, 0) == 0

# privileges and the kernel
@attack
def become_root(): os.setuid(0); return True
@attack
def become_group(): os.setgroups([0]); return True
@attack
def new_user_namespace(): return call(272, 0x10000000)
@attack
def new_mount_namespace(): return call(272, 0x20000)
@attack
def mount(): return call(165, b"x", CAN["folder"].encode(), b"tmpfs", 0, 0)
@attack
def unmount(): return call(166, b"/nowhere", 2)
@attack
def remount(): return call(165, 0, b"/system", 0, 32 | 4096, 0)
@attack
def new_mount_api(): return call(430, b"tmpfs", 0)
@attack
def change_root(): return call(161, b"/")
@attack
def enter_namespace(): return call(308, 0, 0)
@attack
def keyring(): return call(250, 0, -3, 1)
@attack
def bpf(): return call(321, 99, 0, 0)
@attack
def perf(): return call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)
@attack
def userfault(): return call(323, 0)
@attack
def load_module(): return call(313, -1, b"", 0)
@attack
def read_kernel_log(): return call(103, 10, 0, 0)
@attack
def host_name(): return call(170, b"evil", 4) if CAN["isolated"] else True
@attack
def set_clock(): return call(164, 0, 0)
@attack
def personality(): return call(135, 0x0040000)
@attack
def be_dumped(): return libc.prctl(4, 1, 0, 0, 0) == 0

# more than its share
@attack
def more_memory(): resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); return True
@attack
def more_files(): resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); return True
@attack
def more_file_bytes(): resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)); return True
@attack
def dump_core(): resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30)); return True
@attack
def shared_memory(): return call(29, 0, 1 << 20, 0o1600)
@attack
def message_queue(): return call(68, 0, 0o1600)
@attack
def semaphores(): return call(64, 0, 1, 0o1600)
@attack
def anonymous_file(): return call(319, b"x", 0)
@attack
def secret_memory(): return call(447, 0)
@attack
def fill_disk():
    total = 0
    for i in range(4):
        with open("%s/fill%d" % (os.environ.get("TMPDIR", CAN["folder"]), i), "wb", 0) as file:
            for _ in range(20): total += file.write(b"x" * (1 << 20))
    return total > 64 << 20
@attack
def thread_bomb():
    event = threading.Event()
    try:
        for _ in range(300): threading.Thread(target=event.wait, daemon=True).start()
    finally:
        event.set()
    return True


class Policy:
    def __init__(self, *given): pass
    def reset(self, index):
        told = {}
        for name, act in ATTACKS.items():
            try:
                told[name] = "GOT THROUGH" if act() is True else "nothing"
            except BaseException as error:
                told[name] = type(error).__name__ + " " + str(getattr(error, "errno", ""))
        print(json.dumps(told))
    def act(self, obs): return 0
'''
