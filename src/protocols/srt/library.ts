import koffi from 'koffi';
import { SrtError } from './error.ts';

/** Where Debian's packages, other distributions and a build by hand put libsrt 1.5. */
const FILES = ['libsrt-gnutls.so.1.5', 'libsrt.so.1.5', 'libsrt-openssl.so.1.5', 'libsrt-gnutls.so', 'libsrt.so'];
const PACKAGE = 'libsrt1.5-gnutls';

/** Values of srt.h. */
export const OPTION = {
  mss: 0,
  sndsyn: 1,
  rcvsyn: 2,
  firstSequence: 3,
  flightWindow: 4,
  receiveLatency: 43,
  sendLatency: 44,
  streamid: 46,
  payloadSize: 49,
  ipv6only: 54,
} as const;
export const EVENT = { in: 0x1, out: 0x4, error: 0x8 } as const;
/** State of a socket (`SRT_SOCKSTATUS`); higher values mean that it is over. */
export const CONNECTED = 5;
export const ERROR = {
  connectionLost: 2001,
  noConnection: 2002,
  invalidSocket: 5004,
  asyncSend: 6001,
  asyncReceive: 6002,
} as const;
export const INVALID = -1;
/** `SRT_MSGCTRL`: its length, with room for later versions, and the offset of the packet's sequence number. */
export const MESSAGE_CONTROL = { bytes: 64, sequence: 24 } as const;

/** libsrt logs to standard error, a line for each rejected caller: only fatal errors are wanted. */
const LOG_CRITICAL = 2;

/** Calls that may block: they run on a thread of libuv's pool. */
type Waiting<A extends unknown[]> = (...args: [...A, done: (error: unknown, result: number) => void]) => void;

/**
 * The functions of libsrt that are used, as srt.h has them; sockets and epolls are numbers. Buffers that libsrt writes to
 * belong to the caller, and must live until the call is done.
 */
export interface Libsrt {
  readonly createSocket: () => number;
  readonly bind: (socket: number, address: Buffer, length: number) => number;
  /** Takes over a bound UDP socket, and closes it when the SRT socket ends. */
  readonly bindAcquire: (socket: number, descriptor: number) => number;
  readonly listen: (socket: number, backlog: number) => number;
  readonly listenCallback: (socket: number, callback: unknown, context: null) => number;
  readonly setRejectReason: (socket: number, reason: number) => number;
  /** Only begins to connect when the socket is non-blocking. */
  readonly connect: (socket: number, address: Buffer, length: number) => number;
  /** Reason why a connection was rejected. */
  readonly rejection: (socket: number) => string;
  readonly accept: (socket: number, address: Buffer, length: Int32Array) => number;
  readonly getSockName: (socket: number, address: Buffer, length: Int32Array) => number;
  readonly state: (socket: number) => number;
  readonly setOption: (socket: number, option: number, value: Buffer, length: number) => number;
  readonly getOption: (socket: number, option: number, value: Buffer, length: Int32Array) => number;
  /** @param control `SRT_MSGCTRL`, which libsrt fills */
  readonly receive: (socket: number, to: Buffer, length: number, control: Buffer) => number;
  readonly sendBuffer: (socket: number, blocks: Int32Array, bytes: Int32Array) => number;
  readonly send: (socket: number, from: Buffer, length: number, ttl: number, inOrder: number) => number;
  readonly statistics: Waiting<[socket: number, to: Buffer, clear: number]>;
  readonly close: Waiting<[socket: number]>;
  readonly lastError: () => number;
  readonly lastErrorText: () => string;
  readonly epollCreate: () => number;
  readonly epollAdd: (epoll: number, socket: number, events: Int32Array) => number;
  readonly epollUpdate: (epoll: number, socket: number, events: Int32Array) => number;
  readonly epollRemove: (epoll: number, socket: number) => number;
  readonly epollWait: Waiting<[epoll: number, events: Buffer, size: number, timeoutMs: number]>;
  readonly epollRelease: (epoll: number) => number;
  readonly startup: () => number;
  readonly cleanup: Waiting<[]>;
}

/** libsrt is not installed. */
export class SrtMissingError extends SrtError {
  override readonly name = 'SrtMissingError';
}

let loaded: Libsrt | undefined;

/** @throws SrtMissingError */
export function libsrt(): Libsrt {
  loaded ??= bindLibrary();
  return loaded;
}

/** `int (*)(void *context, SRTSOCKET socket, int version, const struct sockaddr *peer, const char *streamid)`. */
export const ListenCallback = koffi.pointer(
  koffi.proto('SrtListenCallback', 'int', ['void *', 'int', 'int', 'void *', 'const char *']),
);

function bindLibrary(): Libsrt {
  const library = open();
  const call = (definition: string) => library.func(definition) as ReturnType<typeof library.func>;
  const lastError = call('int srt_getlasterror(void *)');
  const rejectReason = call('int srt_getrejectreason(int)');
  const rejectionText = call('const char *srt_rejectreason_str(int)');
  call('void srt_setloglevel(int)')(LOG_CRITICAL);
  return {
    createSocket: call('int srt_create_socket()'),
    bind: call('int srt_bind(int, const void *, int)'),
    bindAcquire: call('int srt_bind_acquire(int, int)'),
    listen: call('int srt_listen(int, int)'),
    listenCallback: call('int srt_listen_callback(int, void *, void *)'),
    setRejectReason: call('int srt_setrejectreason(int, int)'),
    connect: call('int srt_connect(int, const void *, int)'),
    rejection: (socket) => rejectionText(rejectReason(socket)),
    accept: call('int srt_accept(int, void *, void *)'),
    getSockName: call('int srt_getsockname(int, void *, void *)'),
    state: call('int srt_getsockstate(int)'),
    setOption: call('int srt_setsockflag(int, int, const void *, int)'),
    getOption: call('int srt_getsockflag(int, int, void *, void *)'),
    receive: call('int srt_recvmsg2(int, void *, int, void *)'),
    sendBuffer: call('int srt_getsndbuffer(int, void *, void *)'),
    send: call('int srt_sendmsg(int, const void *, int, int, int)'),
    statistics: call('int srt_bstats(int, void *, int)').async,
    close: call('int srt_close(int)').async,
    lastError: () => lastError(null),
    lastErrorText: call('const char *srt_getlasterror_str()'),
    epollCreate: call('int srt_epoll_create()'),
    epollAdd: call('int srt_epoll_add_usock(int, int, const void *)'),
    epollUpdate: call('int srt_epoll_update_usock(int, int, const void *)'),
    epollRemove: call('int srt_epoll_remove_usock(int, int)'),
    epollWait: call('int srt_epoll_uwait(int, void *, int, int64_t)').async,
    epollRelease: call('int srt_epoll_release(int)'),
    startup: call('int srt_startup()'),
    cleanup: call('int srt_cleanup()').async,
  };
}

function open() {
  for (const file of FILES) {
    try {
      return koffi.load(file);
    } catch {
      // the next name
    }
  }
  throw new SrtMissingError(`SRT needs libsrt 1.5, which is not installed: install Debian's package ${PACKAGE}`);
}
