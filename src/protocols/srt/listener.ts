import koffi from 'koffi';
import { isIPv6 } from 'node:net';
import type { SrtOption } from '../../lib/srt-options.ts';
import type { Logger } from '../../log/log.ts';
import { isUnspecified, readAddress, SOCKADDR_BYTES, writeAddress, type SrtAddress } from './address.ts';
import { SrtConnection } from './connection.ts';
import { SrtError } from './error.ts';
import { PortGuard } from './guard/port-guard.ts';
import { UdpSocket } from './guard/udp-socket.ts';
import { EVENT, INVALID, ListenCallback, OPTION, type Libsrt } from './library.ts';
import { optionBytes } from './option-bytes.ts';
import { Pulse } from './pulse.ts';
import { REJECTION } from './rejection.ts';
import type { SrtRuntime, Watcher } from './runtime.ts';

/** A client that wants to connect. */
export interface SrtCaller {
  readonly peer: SrtAddress;
  readonly streamId: string;
  /** Port of this server. */
  readonly port: number;
}

export interface SrtListenOptions {
  /** An address, `*` for every IPv4 address or `::` for every IPv6 address of the machine. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** With `::`: every IPv4 address as well. */
  readonly ipv4Too?: boolean;
  readonly options: readonly SrtOption[];
  readonly log: Logger;
  /** The client behind an address, where a proxy of this process calls from there; undefined for other callers. */
  readonly clientAt?: ((caller: SrtAddress) => SrtAddress | undefined) | undefined;
  /**
   * Returns the REJECTION code for a caller, or undefined to admit it. Must answer at once: the port is blocked until then.
   */
  readonly refuse: (caller: SrtCaller) => number | undefined;
  readonly connection: (connection: SrtConnection) => void;
}

const BACKLOG = 128;
const MAX_STREAM_ID_BYTES = 512;
/**
 * Packets on their way: as many as fit into libsrt's receive buffer. Its default of 25,600 brings nothing beyond that, and
 * costs each connection longer lists.
 */
const WINDOW = Buffer.from(Int32Array.of(8192).buffer);
const WINDOW_OPTIONS: ReadonlySet<string> = new Set(['SRTO_FC', 'SRTO_RCVBUF']);
/** Made once: koffi never frees a type. */
const SOCKADDR = { ipv4: koffi.array('uint8_t', 16, 'Typed'), ipv6: koffi.array('uint8_t', 28, 'Typed') };
const OFF = Buffer.alloc(4);
const ON = Buffer.from([1, 0, 0, 0]);

/** Addresses to listen on for those of Server.xml: libsrt has one socket for every address, or one for each family. */
export function listenPlaces(ip: readonly string[]): Pick<SrtListenOptions, 'host' | 'ipv4Too'>[] {
  const isEveryIpv4 = (host: string): boolean => host === '*' || host === '0.0.0.0';
  if (!ip.includes('::') || !ip.some(isEveryIpv4)) return ip.map((host) => ({ host }));
  return ip.filter((host) => !isEveryIpv4(host)).map((host) => ({ host, ipv4Too: host === '::' }));
}

/** A port that SRT callers connect to. */
export class SrtListener implements Watcher {
  readonly #runtime: SrtRuntime;
  readonly #library: Libsrt;
  readonly #options: SrtListenOptions;
  readonly #socket: number;
  /** libsrt calls it on a thread of its own, and blocks until it has returned. */
  readonly #callback: ReturnType<typeof koffi.register>;
  #guard: PortGuard | undefined;
  #pulse: Pulse | undefined;
  #port: number;
  #closed: Promise<void> | undefined;

  /** @throws ListenError or SrtError when the port cannot be opened or an option is refused, named without its value */
  constructor(runtime: SrtRuntime, options: SrtListenOptions) {
    this.#runtime = runtime;
    this.#library = runtime.library;
    this.#options = options;
    this.#port = options.port;
    this.#socket = this.#library.createSocket();
    this.#callback = koffi.register(
      (_context: unknown, socket: number, _version: number, peer: bigint, streamId: string | null) =>
        this.#onCall(socket, peer, streamId ?? ''),
      ListenCallback,
    );
    try {
      this.#listen();
    } catch (error) {
      void this.close();
      throw error;
    }
  }

  get port(): number {
    return this.#port;
  }

  /** Admits no more callers; connections stay. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#pulse?.close();
      const done = (): void => {
        koffi.unregister(this.#callback);
        resolve();
      };
      this.#runtime.release(this.#socket, { done });
    });
    return this.#closed;
  }

  /** Closes the port, too, which no connection uses any more. Idempotent. */
  async free(): Promise<void> {
    await this.close();
    if (this.#guard === undefined) return;
    this.#guard.close();
    this.#runtime.guards.delete(this.#guard);
  }

  ready(): void {
    const peer = Buffer.alloc(SOCKADDR_BYTES);
    const length = new Int32Array(1);
    while (this.#closed === undefined) {
      length[0] = peer.length;
      const socket = this.#library.accept(this.#socket, peer, length);
      if (socket === INVALID) return;
      try {
        this.#take(socket, peer.subarray(0, length[0]));
      } catch (error) {
        this.#runtime.release(socket);
        if (!(error instanceof SrtError)) this.fail(error);
      }
    }
  }

  fail(error: unknown): void {
    this.#options.log.error({ err: error }, 'an SRT connection could not be accepted');
  }

  #listen(): void {
    const { host, port, options, ipv4Too = false, log } = this.#options;
    const set = (option: number, value: Buffer, name: string): void => {
      this.#check(this.#library.setOption(this.#socket, option, value, value.length), `libsrt refuses ${name}`);
    };
    set(OPTION.rcvsyn, OFF, 'SRTO_RCVSYN');
    set(OPTION.sndsyn, OFF, 'SRTO_SNDSYN');
    if (isIPv6(host)) set(OPTION.ipv6only, ipv4Too ? OFF : ON, 'SRTO_IPV6ONLY');
    if (!options.some(({ name }) => WINDOW_OPTIONS.has(name))) set(OPTION.flightWindow, WINDOW, 'SRTO_FC');
    for (const option of options) set(option.id, optionBytes(option), option.name);
    const where = `SRT cannot listen on UDP port ${port} of ${host}`;
    this.#bind(where);
    this.#port = this.#nameOf(this.#socket)?.port ?? port;
    this.#check(this.#library.listenCallback(this.#socket, this.#callback, null), where);
    this.#check(this.#library.listen(this.#socket, BACKLOG), where);
    this.#runtime.watch(this.#socket, EVENT.in | EVENT.error, this);
    this.#pulse = new Pulse(host, this.#port, log);
  }

  #bind(where: string): void {
    const { host, port, ipv4Too = false, log } = this.#options;
    if (process.platform !== 'linux') {
      const address = writeAddress(host, port);
      return this.#check(this.#library.bind(this.#socket, address, address.length), where);
    }
    const udp = openUdp(host, port, ipv4Too, where);
    const guard = new PortGuard(udp, log);
    if (this.#library.bindAcquire(this.#socket, udp.descriptor) === INVALID) {
      guard.close();
      udp.abandon();
      throw new SrtError(`${where}: ${this.#library.lastErrorText()}`);
    }
    this.#guard = guard;
    this.#runtime.guards.add(guard);
  }

  /** @returns 0 to admit the caller */
  #onCall(socket: number, peer: bigint, streamId: string): number {
    // this port is being closed, with locks held that every other call of libsrt may wait for
    if (this.#closed !== undefined) return -1;
    const reason = this.#objection(peer, streamId);
    if (reason === undefined) return 0;
    this.#library.setRejectReason(socket, reason);
    return -1;
  }

  #objection(peer: bigint, streamId: string): number | undefined {
    try {
      // the address family decides the length of the structure
      const isIpv4 = (koffi.decode(peer, 'uint16_t') as number) === 2;
      const bytes = koffi.decode(peer, isIpv4 ? SOCKADDR.ipv4 : SOCKADDR.ipv6) as Uint8Array;
      const address = this.#peerOf(Buffer.from(bytes));
      return address === undefined
        ? REJECTION.badRequest
        : this.#options.refuse({ peer: address, streamId, port: this.#port });
    } catch (error) {
      this.fail(error);
      return REJECTION.internal;
    }
  }

  #peerOf(sockaddr: Buffer): SrtAddress | undefined {
    const caller = readAddress(sockaddr);
    return caller && (this.#options.clientAt?.(caller) ?? caller);
  }

  #take(socket: number, peerBytes: Buffer): void {
    const peer = this.#peerOf(peerBytes);
    const streamId = this.#streamIdOf(socket);
    if (peer === undefined || streamId === undefined) throw new SrtError('the caller has gone');
    const local = this.#nameOf(socket);
    const ends = {
      peer,
      local: local === undefined || isUnspecified(local) ? undefined : local,
      streamId,
      first: this.#firstOf(socket),
      guard: this.#guard,
    };
    this.#options.connection(new SrtConnection(this.#runtime, socket, ends));
  }

  #nameOf(socket: number): SrtAddress | undefined {
    const name = Buffer.alloc(SOCKADDR_BYTES);
    const length = new Int32Array([name.length]);
    return this.#library.getSockName(socket, name, length) === INVALID
      ? undefined
      : readAddress(name.subarray(0, length[0]));
  }

  #streamIdOf(socket: number): string | undefined {
    const text = Buffer.alloc(MAX_STREAM_ID_BYTES + 1);
    const length = new Int32Array([text.length]);
    if (this.#library.getOption(socket, OPTION.streamid, text, length) === INVALID) return undefined;
    return text.toString('utf8', 0, length[0]);
  }

  /** Sequence number of the first packet that is sent, which the caller chose. */
  #firstOf(socket: number): number {
    const number = Buffer.alloc(4);
    if (this.#library.getOption(socket, OPTION.firstSequence, number, new Int32Array([number.length])) === INVALID) {
      throw new SrtError('the caller has gone');
    }
    return number.readInt32LE();
  }

  #check(result: number, what: string): void {
    if (result === INVALID) throw new SrtError(`${what}: ${this.#library.lastErrorText()}`);
  }
}

function openUdp(host: string, port: number, ipv4Too: boolean, where: string): UdpSocket {
  try {
    return new UdpSocket(host, port, ipv4Too);
  } catch (error) {
    if (!(error instanceof SrtError)) throw error;
    throw new SrtError(`${where}: ${error.message}`);
  }
}
