import { EventEmitter } from 'node:events';
import { KilnError } from '../../errors.ts';
import type { Connection } from '../../core/source.ts';
import { within } from '../../lib/within.ts';
import type { OutboundGuard } from '../../protocols/outbound/guard.ts';
import { writeDescription, type LocalDescription } from '../local-description.ts';
import type { MediaWorker } from '../media-worker.ts';
import { peerRole, PeerLink } from '../peer-link.ts';
import { parseRemoteDescription, SdpError, type RemoteDescription } from '../remote-description.ts';
import type { WorkerPool } from '../worker-pool.ts';
import { Endpoint } from './endpoint.ts';
import { IceBridge } from './ice-bridge.ts';
import { readRemoteIce, type RemoteIce } from './remote-ice.ts';
import type { EndpointUrl } from './url.ts';

/** Means to make calls. */
export interface Caller {
  /** Media workers of this node; undefined where WebRTC is off. */
  readonly pool: () => WorkerPool | undefined;
  /** Decides where calls may go: for HTTP, and for media. Makes their errors. */
  readonly guard: OutboundGuard;
}

/** An answer of the server, which `connect` takes. */
export interface CallAnswer extends Pick<RemoteDescription, 'media' | 'fingerprint' | 'setup'> {
  readonly ice: RemoteIce;
}

interface CallEvents {
  /** The server has gone, after it was connected. */
  gone: [reason: string];
  /** Bytes of a datagram of media or DTLS from the server. */
  received: [bytes: number];
}

/** Time for ICE and DTLS together: with that of the offer, less than pulls wait. */
const CONNECT_MS = 8000;
/** Time without ICE checks after which the media worker ends its transport. */
const WORKER_SILENCE_MS = 30_000;
/** Bits per second: nothing is chosen by the estimate. */
const BITRATE = 10_000_000;
const NOT_WANTED = 'the connection is not wanted any more';

/**
 * A WebRTC connection in which Kiln is the client: it posts its offer to an endpoint of WHIP or WHEP. The media go through a media
 * worker, as those of clients do. Its owner closes it, also after `gone`.
 */
export class Call extends EventEmitter<CallEvents> {
  readonly worker: MediaWorker;
  readonly link: PeerLink;
  readonly #guard: OutboundGuard;
  readonly #endpoint: Endpoint;
  readonly #stop = new AbortController();
  readonly #over = Promise.withResolvers<never>();
  readonly #open = Promise.withResolvers<true>();
  #bridge: IceBridge | undefined;
  /** ICE has chosen a way. */
  #hasWay = false;
  #connected = false;
  #closed = false;

  /** Takes a transport of a media worker. @throws the guard's error when there is none */
  static async open({ pool, guard }: Caller, target: EndpointUrl): Promise<Call> {
    const workers = pool();
    if (workers === undefined)
      throw guard.error('WebRTC is off: Bind has no WebRTC in its Providers or its Publishers');
    try {
      await workers.ready();
      const worker = workers.pick(undefined, () => false);
      const link = await PeerLink.openLoopback(worker, { timeoutMs: WORKER_SILENCE_MS, initialBitrate: BITRATE });
      const call = new Call(worker, link, guard, target);
      await call.#build();
      return call;
    } catch (error) {
      throw asGuardError(error, guard);
    }
  }

  private constructor(worker: MediaWorker, link: PeerLink, guard: OutboundGuard, target: EndpointUrl) {
    super();
    this.worker = worker;
    this.link = link;
    this.#guard = guard;
    this.#endpoint = new Endpoint(guard, target);
    worker.sessions++;
    // it may reject before it is awaited
    this.#over.promise.catch(() => undefined);
    link.once('connected', () => this.#open.resolve(true));
    link.on('gone', (reason) => this.#lose(reason));
  }

  get sentBytes(): number {
    return this.#bridge?.sentBytes ?? 0;
  }

  /** The server's address for media, once it is connected. */
  get connection(): Connection | undefined {
    const { peer, localPort } = this.#bridge ?? {};
    if (peer === undefined) return undefined;
    return { transport: 'UDP', protocol: 'UDP', localPort, remoteAddress: peer.address, remotePort: peer.port };
  }

  /** Posts an offer with some media. @throws the guard's error when the server does not answer it */
  async offer(media: LocalDescription['media'], streamId: string): Promise<CallAnswer> {
    const bridge = this.#bridge as IceBridge;
    const sdp = writeDescription({
      sessionId: Date.now(),
      streamId,
      setup: 'actpass',
      ice: { ...bridge.credentials, iceLite: false },
      fingerprint: this.link.fingerprint,
      candidates: bridge.candidates,
      media,
    });
    const answer = await Promise.race([this.#endpoint.offer(sdp, this.#stop.signal), this.#over.promise]);
    try {
      return { ...parseRemoteDescription(answer), ice: readRemoteIce(answer) };
    } catch (error) {
      throw error instanceof SdpError ? this.#guard.error(`the server's answer is wrong: ${error.message}`) : error;
    }
  }

  /** Connects to where the answer says. @throws the guard's error when that fails, or takes too long */
  async connect({ fingerprint, setup, ice }: CallAnswer): Promise<void> {
    const bridge = this.#bridge as IceBridge;
    try {
      await Promise.race([this.link.connect({ fingerprint, role: peerRole(setup) }), this.#over.promise]);
      await Promise.race([bridge.connect(ice), this.#over.promise]);
      const isOpen = await within(CONNECT_MS, Promise.race([this.#open.promise, this.#over.promise]));
      if (isOpen === undefined) throw this.#guard.error(this.#late(ice));
      this.#connected = true;
    } catch (error) {
      throw asGuardError(error, this.#guard);
    }
  }

  /** Ends the connection, and the session on the server. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.worker.sessions--;
    this.#stop.abort();
    this.#over.reject(this.#guard.error(NOT_WANTED));
    this.link.close();
    this.#bridge?.close();
    void this.#endpoint.leave();
    this.removeAllListeners();
  }

  async #build(): Promise<void> {
    const { transport, iceParameters } = this.link;
    const [candidate] = transport.iceCandidates;
    try {
      this.#bridge = await IceBridge.open({
        guard: this.#guard,
        transport: { ...iceParameters, address: candidate?.address ?? '', port: candidate?.port ?? 0 },
        onOpen: () => {
          this.#hasWay = true;
        },
        onLost: (reason) => this.#lose(reason),
        onReceived: (bytes) => this.emit('received', bytes),
      });
      if (this.#closed) this.#bridge.close();
    } catch (error) {
      this.close();
      throw this.#guard.error(`no port for WebRTC can be opened: ${(error as Error).message}`);
    }
  }

  #late({ candidates }: RemoteIce): string {
    const seconds = CONNECT_MS / 1000;
    if (this.#hasWay) return `DTLS did not connect within ${seconds} s`;
    const of = candidates.length === 0 ? 'the answer has no addresses' : `none of ${listed(candidates)} answered`;
    return `ICE did not connect within ${seconds} s: ${of}`;
  }

  #lose(reason: string): void {
    if (this.#closed) return;
    if (this.#connected) this.emit('gone', reason);
    else this.#over.reject(this.#guard.error(reason));
  }
}

function listed(candidates: RemoteIce['candidates']): string {
  return candidates
    .slice(0, 4)
    .map(({ address, port }) => `${address}:${port}`)
    .join(', ');
}

/** Error of a media worker as one of the guard's, for the log of a pull or a push. */
function asGuardError(error: unknown, guard: OutboundGuard): unknown {
  return error instanceof KilnError ? guard.error(error.message) : error;
}
