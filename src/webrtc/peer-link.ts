import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import { kilnError } from '../errors.ts';
import type { HostCandidate, TransportChoice } from './candidate.ts';
import type { MediaWorker } from './media-worker.ts';
import type { RemoteDescription } from './remote-description.ts';

/** DTLS parameters of a peer's description. */
export interface PeerEnd {
  readonly fingerprint: types.DtlsFingerprint;
  readonly role: types.DtlsRole;
}

/** DTLS role of a peer with the given `setup`; client for `actpass`. */
export function peerRole(setup: RemoteDescription['setup']): types.DtlsRole {
  return setup === 'passive' ? 'server' : 'client';
}

/** Limit of mediasoup, for which 0 means no timeout. */
const MAX_CONSENT_SECONDS = 255;

/** Consent timeout for mediasoup, in whole seconds (1 to 255). */
export function consentTimeout(timeoutMs: number): number {
  return Math.min(MAX_CONSENT_SECONDS, Math.max(1, Math.round(timeoutMs / 1000)));
}

export interface LinkOptions {
  readonly way: TransportChoice;
  /** Time without ICE checks after which the peer counts as gone. */
  readonly timeoutMs: number;
  /** Bits per second assumed until there is an estimate. */
  readonly initialBitrate: number;
  /** Enables data channels: largest message each way, in bytes. */
  readonly dataChannels?: { readonly send: number; readonly receive: number };
}

interface LinkEvents {
  /** DTLS is connected: media flows. */
  connected: [];
  /** The peer has gone. @param lost the media worker died, and the peer can reconnect at once */
  gone: [reason: string, lost: boolean];
}

/** ICE and DTLS with one peer, on one worker. The owner closes it, also after `gone`. */
export class PeerLink extends EventEmitter<LinkEvents> {
  readonly transport: types.WebRtcTransport;
  readonly #worker: MediaWorker;
  readonly #way: TransportChoice;

  private constructor(transport: types.WebRtcTransport, worker: MediaWorker, way: TransportChoice) {
    super();
    this.transport = transport;
    this.#worker = worker;
    this.#way = way;
    transport.on('routerclose', () => this.emit('gone', 'the media worker died', true));
    transport.on('icestatechange', (state) => {
      if (state === 'disconnected' || state === 'closed') this.emit('gone', `ICE is ${state}`, false);
    });
    transport.on('dtlsstatechange', (state) => {
      if (state === 'failed' || state === 'closed') this.emit('gone', `DTLS is ${state}`, false);
      if (state === 'connected') this.emit('connected');
    });
  }

  /** @throws mediaUnavailable when the worker dies before the link is open */
  static async open(
    worker: MediaWorker,
    { way, timeoutMs, initialBitrate, dataChannels }: LinkOptions,
  ): Promise<PeerLink> {
    const iceConsentTimeout = consentTimeout(timeoutMs);
    try {
      const transport = await worker.createWebRtcTransport({
        protocol: way.protocol,
        iceConsentTimeout,
        initialBitrate,
        ...(dataChannels && { dataChannels }),
      });
      return new PeerLink(transport, worker, way);
    } catch (error) {
      throw worker.closed ? kilnError('mediaUnavailable') : error;
    }
  }

  /** Opens a link that only this machine reaches. @throws mediaUnavailable when the worker dies before the link is open */
  static async openLoopback(
    worker: MediaWorker,
    { timeoutMs, initialBitrate }: Pick<LinkOptions, 'timeoutMs' | 'initialBitrate'>,
  ): Promise<PeerLink> {
    const iceConsentTimeout = consentTimeout(timeoutMs);
    try {
      const transport = await worker.createLoopbackTransport({ iceConsentTimeout, initialBitrate });
      return new PeerLink(transport, worker, { protocol: 'udp', entries: [] });
    } catch (error) {
      throw worker.closed ? kilnError('mediaUnavailable') : error;
    }
  }

  get closed(): boolean {
    return this.transport.closed;
  }

  get candidates(): readonly HostCandidate[] {
    return this.#worker.candidatesOn(this.#way);
  }

  get iceParameters(): types.IceParameters {
    return this.transport.iceParameters;
  }

  get fingerprint(): types.DtlsFingerprint {
    const { fingerprints } = this.transport.dtlsParameters;
    return fingerprints.find(({ algorithm }) => algorithm === 'sha-256') as types.DtlsFingerprint;
  }

  /** Starts DTLS with the peer. @throws mediaUnavailable when the link is closed */
  connect({ fingerprint, role }: PeerEnd): Promise<void> {
    return this.ask((transport) => transport.connect({ dtlsParameters: { role, fingerprints: [fingerprint] } }));
  }

  /** Makes new ICE credentials, for a peer whose network changed. @throws mediaUnavailable when the link is closed */
  restartIce(): Promise<types.IceParameters> {
    return this.ask((transport) => transport.restartIce());
  }

  /** Sends a request to the worker. @throws mediaUnavailable when the link is closed by the time of the answer */
  async ask<T>(request: (transport: types.WebRtcTransport) => Promise<T>): Promise<T> {
    if (this.closed) throw kilnError('mediaUnavailable');
    try {
      const answer = await request(this.transport);
      if (!this.closed) return answer;
    } catch (error) {
      if (!this.closed && !this.#worker.closed) throw error;
    }
    throw kilnError('mediaUnavailable');
  }

  /** Idempotent. */
  close(): void {
    this.removeAllListeners();
    this.transport.close();
  }
}
