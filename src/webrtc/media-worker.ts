import childProcess, { type ChildProcess, type SpawnOptions } from 'node:child_process';
import { isIPv6 } from 'node:net';
import type { Writable } from 'node:stream';
import { createWorker } from 'mediasoup';
import type { types } from 'mediasoup';
import { ListenError } from '../core/listen-error.ts';
import type { Transport } from '../lib/address.ts';
import { stateOf } from '../lib/process-usage.ts';
import type { IceSocket } from './addresses.ts';
import { candidatesOn, hostCandidates, type HostCandidate, type TransportChoice } from './candidate.ts';
import { mediaCodecs, type RtpCodec } from './codecs.ts';
import { ownCodec } from './declared.ts';
import { HangWatch } from './hang-watch.ts';
import { RtpChannel } from './rtp-channel.ts';
import { WORKER_PROGRAM } from './worker-program.ts';

/** Ports on loopback, above those usually configured for ICE. */
const PIPE_PORTS = { min: 50_000, max: 59_999 };
/** Bytes: holds the burst of a key frame that arrives while the worker waits for the CPU. */
const SOCKET_BUFFER = 1024 * 1024;
const BUFFERS = { recvBufferSize: SOCKET_BUFFER, sendBufferSize: SOCKET_BUFFER };
/** Receive window of data channels, in bytes. */
const MIN_RECEIVE_WINDOW = 64 * 1024;
const CHECK_MS = 2000;
/** Descriptor by which mediasoup writes to a worker. */
const CHANNEL_FD = 3;
/** Least time between key frame requests to a producer, from however many viewers: key frames are many times larger than others. */
const KEY_FRAME_DELAY_MS = 1000;

/** One mediasoup process with its ports and its router. Transports and producers made on it close with it. */
export class MediaWorker {
  readonly index: number;
  readonly pid: number;
  readonly candidates: readonly HostCandidate[];
  readonly rtp: RtpChannel;
  /** Viewers placed here. */
  sessions = 0;
  readonly #worker: types.Worker;
  readonly #server: types.WebRtcServer;
  readonly #router: types.Router;
  readonly #watch = setInterval(() => this.#check(), CHECK_MS).unref();
  readonly #hangWatch = new HangWatch();
  #isAnswered = true;

  private constructor(
    index: number,
    worker: types.Worker,
    server: types.WebRtcServer,
    router: types.Router,
    candidates: readonly HostCandidate[],
    channel: Writable,
  ) {
    this.index = index;
    this.pid = worker.pid;
    this.candidates = candidates;
    this.rtp = new RtpChannel(channel);
    this.#worker = worker;
    this.#server = server;
    this.#router = router;
    worker.observer.once('close', () => clearInterval(this.#watch));
  }

  /**
   * Starts the process and opens its ports.
   * @param onDied called once when it ends without having been closed
   * @param release frees ports that are held for this worker, right before it opens them
   * @throws ListenError when a port cannot be opened, Error when the worker cannot be started
   */
  static async start(
    index: number,
    sockets: readonly IceSocket[],
    onDied: (error: Error) => void,
    release?: () => void,
  ): Promise<MediaWorker> {
    const { started, child } = inOwnSession(() => createWorker({ logLevel: 'warn', workerBin: WORKER_PROGRAM }));
    const worker = await started;
    try {
      const listenInfos = sockets.map(({ protocol, ip, port }) => ({
        protocol,
        ip,
        ...(port === 0 ? {} : { port }),
        ...(protocol === 'udp' ? BUFFERS : {}),
        ...(isIPv6(ip) ? { flags: { ipv6Only: true } } : {}),
      }));
      release?.();
      const server = await worker.createWebRtcServer({ listenInfos });
      const router = await worker.createRouter();
      const candidates = hostCandidates(await openedSockets(server, sockets));
      worker.on('died', onDied);
      return new MediaWorker(index, worker, server, router, candidates, child.stdio[CHANNEL_FD] as Writable);
    } catch (error) {
      worker.close();
      throw listenError(error) ?? error;
    }
  }

  get closed(): boolean {
    return this.#worker.closed;
  }

  candidatesOn(way: TransportChoice): HostCandidate[] {
    return candidatesOn(this.candidates, way);
  }

  createWebRtcTransport(options: {
    protocol: Transport | undefined;
    iceConsentTimeout: number;
    /** Bits per second assumed until there is an estimate. */
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

  /** Creates a transport that only this machine reaches, at the port of its only candidate. */
  createLoopbackTransport(options: {
    iceConsentTimeout: number;
    /** Bits per second assumed until there is an estimate. */
    initialBitrate: number;
  }): Promise<types.WebRtcTransport> {
    return this.#router.createWebRtcTransport({
      listenInfos: [{ protocol: 'udp', ip: '127.0.0.1', portRange: PIPE_PORTS, ...BUFFERS }],
      iceConsentTimeout: options.iceConsentTimeout,
      initialAvailableOutgoingBitrate: options.initialBitrate,
    });
  }

  createDirectTransport(): Promise<types.DirectTransport> {
    return this.#router.createDirectTransport();
  }

  /** Creates one end of a pipe between routers of this machine. */
  createPipeTransport(): Promise<types.PipeTransport> {
    return this.#router.createPipeTransport({
      listenInfo: { protocol: 'udp', ip: '127.0.0.1', portRange: PIPE_PORTS, ...BUFFERS },
      enableRtx: true,
    });
  }

  /**
   * Makes a producer whose consumers use exactly the payload types of `codec`. mediasoup takes them from
   * the router's codecs at the moment of the call, so one router serves every choice of payload types.
   * @param rtp of incoming packets: one codec of that kind, and its retransmissions
   */
  produce(transport: types.Transport, codec: RtpCodec, rtp: types.RtpParameters): Promise<types.Producer> {
    this.#router.updateMediaCodecs(mediaCodecs(codec));
    return transport.produce({
      kind: codec.kind,
      rtpParameters: rtp,
      keyFrameRequestDelay: KEY_FRAME_DELAY_MS,
      appData: ownCodec(codec),
    });
  }

  close(): void {
    this.#worker.close();
  }

  #check(): void {
    // a hung process handles no other signal; `died` follows. Requests to it would pile up in memory
    if (this.#hangWatch.isHung(this.#isAnswered, stateOf(this.pid))) process.kill(this.pid, 'SIGKILL');
    if (!this.#isAnswered) return;
    this.#isAnswered = false;
    const answered = (): void => {
      this.#isAnswered = true;
    };
    // fails only when the worker ends
    this.#worker.getResourceUsage().then(answered, answered);
  }
}

/** mediasoup's error for a socket, with the reason of libuv. */
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
 * Starts mediasoup processes that only this process ends. By default they are in the terminal's process group, where
 * Ctrl-C reaches them, and mediasoup closes them on a signal, when this process may still drain or end its streams.
 * A worker ends when its pipes close, so that it never outlives this process.
 * @param start must spawn before it returns: mediasoup has no option for this
 */
function inOwnSession<R>(start: () => R): { started: R; child: ChildProcess } {
  const { spawn } = childProcess;
  let child: ChildProcess | undefined;
  const before = SIGNALS.map((signal) => new Set(process.listeners(signal)));
  const detached = (path: string, args: readonly string[], options: SpawnOptions) =>
    (child = spawn(path, args, { ...options, detached: true }));
  Object.assign(childProcess, { spawn: detached });
  try {
    const started = start();
    return { started, child: child as unknown as ChildProcess };
  } finally {
    Object.assign(childProcess, { spawn });
    for (const [index, signal] of SIGNALS.entries()) {
      for (const listener of process.listeners(signal))
        if (!before[index]?.has(listener)) process.off(signal, listener);
    }
  }
}

/** Fills in the ports that the system chose for sockets with port 0. */
async function openedSockets(server: types.WebRtcServer, sockets: readonly IceSocket[]): Promise<IceSocket[]> {
  if (sockets.every(({ port }) => port !== 0)) return [...sockets];
  const { udpSockets, tcpServers } = await server.dump();
  const opened = { udp: udpSockets.values(), tcp: tcpServers.values() };
  return sockets.map((socket) => ({ ...socket, port: opened[socket.protocol].next().value?.port ?? socket.port }));
}
