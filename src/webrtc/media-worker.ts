import childProcess, { type SpawnOptions } from 'node:child_process';
import { isIPv6 } from 'node:net';
import { createWorker } from 'mediasoup';
import type { types } from 'mediasoup';
import { ListenError } from '../core/listen-error.ts';
import type { Transport } from '../lib/address.ts';
import type { IceSocket } from './addresses.ts';
import { candidatesOn, hostCandidates, type HostCandidate, type Way } from './candidate.ts';
import { mediaCodecs, type RtpCodec } from './codecs.ts';

/** Above what is usually configured for ICE. */
const PIPE_PORTS = { min: 50_000, max: 59_999 };
/** A key frame comes all at once, and what comes while the worker has to wait for its turn is lost beyond this. */
const SOCKET_BUFFER = 1024 * 1024;
const BUFFERS = { recvBufferSize: SOCKET_BUFFER, sendBufferSize: SOCKET_BUFFER };
/** Of data channels, in bytes. */
const MIN_RECEIVE_WINDOW = 64 * 1024;
const CHECK_MS = 2000;
/** A worker that has not answered at so many looks is hung: what is written to it piles up here. */
const SILENT_CHECKS = 5;
/** However many viewers ask a producer for key frames, it is asked no more often: each costs many times another picture. */
const KEY_FRAME_DELAY_MS = 1000;

/** One mediasoup process with its ports and its router. Everything made on it closes with it. */
export class MediaWorker {
  readonly index: number;
  readonly pid: number;
  readonly candidates: readonly HostCandidate[];
  /** Viewers placed here. */
  sessions = 0;
  readonly #worker: types.Worker;
  readonly #server: types.WebRtcServer;
  readonly #router: types.Router;
  readonly #watch = setInterval(() => this.#check(), CHECK_MS).unref();
  /** How often it was looked whether the question is answered that was put last; undefined when it is. */
  #unanswered: number | undefined;

  private constructor(
    index: number,
    worker: types.Worker,
    server: types.WebRtcServer,
    router: types.Router,
    candidates: readonly HostCandidate[],
  ) {
    this.index = index;
    this.pid = worker.pid;
    this.candidates = candidates;
    this.#worker = worker;
    this.#server = server;
    this.#router = router;
    worker.observer.once('close', () => clearInterval(this.#watch));
  }

  /**
   * Starts the process and opens its ports.
   * @param onDied called once when it ends without having been closed
   * @throws ListenError when a port cannot be opened, Error when the worker cannot be started
   */
  static async start(
    index: number,
    sockets: readonly IceSocket[],
    onDied: (error: Error) => void,
  ): Promise<MediaWorker> {
    const worker = await inOwnSession(() => createWorker({ logLevel: 'warn' }));
    try {
      const listenInfos = sockets.map(({ protocol, ip, port }) => ({
        protocol,
        ip,
        ...(port === 0 ? {} : { port }),
        ...(protocol === 'udp' ? BUFFERS : {}),
        ...(isIPv6(ip) ? { flags: { ipv6Only: true } } : {}),
      }));
      const server = await worker.createWebRtcServer({ listenInfos });
      const router = await worker.createRouter();
      const candidates = hostCandidates(await openedSockets(server, sockets));
      worker.on('died', onDied);
      return new MediaWorker(index, worker, server, router, candidates);
    } catch (error) {
      worker.close();
      throw listenError(error) ?? error;
    }
  }

  get closed(): boolean {
    return this.#worker.closed;
  }

  /** Those of its candidates that a peer is told. */
  candidatesOn(way: Way): HostCandidate[] {
    return candidatesOn(this.candidates, way);
  }

  createWebRtcTransport(options: {
    protocol: Transport | undefined;
    iceConsentTimeout: number;
    /** Bits per second that the way to the viewer is taken to carry before anything is known of it. */
    initialBitrate: number;
    dataChannels?: { readonly send: number; readonly receive: number };
  }): Promise<types.WebRtcTransport> {
    const { dataChannels } = options;
    return this.#router.createWebRtcTransport({
      webRtcServer: this.#server,
      enableUdp: options.protocol !== 'tcp',
      enableTcp: options.protocol !== 'udp',
      preferUdp: true,
      iceConsentTimeout: options.iceConsentTimeout,
      initialAvailableOutgoingBitrate: options.initialBitrate,
      ...(dataChannels && {
        enableSctp: true,
        maxSendMessageSize: dataChannels.send,
        maxReceiveMessageSize: dataChannels.receive,
        sctpMaxReceiverWindowBufferSize: Math.max(MIN_RECEIVE_WINDOW, 2 * dataChannels.receive),
      }),
    });
  }

  createDirectTransport(): Promise<types.DirectTransport> {
    return this.#router.createDirectTransport();
  }

  /** One end of a pipe between routers of this machine. */
  createPipeTransport(): Promise<types.PipeTransport> {
    return this.#router.createPipeTransport({
      listenInfo: { protocol: 'udp', ip: '127.0.0.1', portRange: PIPE_PORTS, ...BUFFERS },
      enableRtx: true,
    });
  }

  /**
   * Makes a producer whose consumers use exactly the payload types of `codec`. mediasoup takes them from
   * the router's codecs at the moment of the call, so one router serves every choice of payload types.
   * @param rtp how packets come in: one codec of that kind, retransmissions aside
   */
  produce(transport: types.Transport, codec: RtpCodec, rtp: types.RtpParameters): Promise<types.Producer> {
    this.#router.updateMediaCodecs(mediaCodecs(codec));
    return transport.produce({ kind: codec.kind, rtpParameters: rtp, keyFrameRequestDelay: KEY_FRAME_DELAY_MS });
  }

  close(): void {
    this.#worker.close();
  }

  #check(): void {
    if (this.#unanswered !== undefined) {
      // a process that is hung hears no other signal; `died` follows
      if (++this.#unanswered >= SILENT_CHECKS) process.kill(this.pid, 'SIGKILL');
      return;
    }
    this.#unanswered = 0;
    const answered = (): void => {
      this.#unanswered = undefined;
    };
    // it fails when the worker ends
    this.#worker.getResourceUsage().then(answered, answered);
  }
}

/** What libuv says, in mediasoup's words. */
const LISTEN_FAILURE = /\[protocol:(udp|tcp), ip:'([^']+)', port:(\d+)\]: (.*)$/;
const CODES: Readonly<Record<string, string>> = {
  'address already in use': 'EADDRINUSE',
  'address not available': 'EADDRNOTAVAIL',
  'permission denied': 'EACCES',
};

function listenError(error: unknown): ListenError | undefined {
  const [, protocol, address = '', port, reason = ''] = LISTEN_FAILURE.exec((error as Error).message) ?? [];
  if (protocol === undefined) return undefined;
  return new ListenError(CODES[reason] ?? reason, protocol === 'udp' ? 'bind' : 'listen', address, Number(port));
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Starts mediasoup processes that only this one ends. mediasoup leaves them in the terminal's process group, whose
 * Ctrl-C would reach them, and closes them itself at a signal: while this process drains, or ends its streams.
 * A worker ends when its pipes close, so that it never outlives this process.
 * @param start must spawn before it returns: mediasoup has no option for this
 */
function inOwnSession<R>(start: () => R): R {
  const { spawn } = childProcess;
  const before = SIGNALS.map((signal) => new Set(process.listeners(signal)));
  const detached = (path: string, args: readonly string[], options: SpawnOptions) =>
    spawn(path, args, { ...options, detached: true });
  Object.assign(childProcess, { spawn: detached });
  try {
    return start();
  } finally {
    Object.assign(childProcess, { spawn });
    for (const [index, signal] of SIGNALS.entries()) {
      for (const listener of process.listeners(signal))
        if (!before[index]?.has(listener)) process.off(signal, listener);
    }
  }
}

/** The sockets with the ports that were found for those that had none. */
async function openedSockets(server: types.WebRtcServer, sockets: readonly IceSocket[]): Promise<IceSocket[]> {
  if (sockets.every(({ port }) => port !== 0)) return [...sockets];
  const { udpSockets, tcpServers } = await server.dump();
  const opened = { udp: udpSockets.values(), tcp: tcpServers.values() };
  return sockets.map((socket) => ({ ...socket, port: opened[socket.protocol].next().value?.port ?? socket.port }));
}
