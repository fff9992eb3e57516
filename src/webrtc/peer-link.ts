import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import { kilnError } from '../errors.ts';
import type { HostCandidate, Way } from './candidate.ts';
import type { MediaWorker } from './media-worker.ts';
import type { RemoteDescription } from './remote-description.ts';

/** A peer's end of DTLS, as its description tells. */
export interface PeerEnd {
  readonly fingerprint: types.DtlsFingerprint;
  readonly role: types.DtlsRole;
}

/** The DTLS role of a peer whose description says `setup`, where either end may choose. */
export function peerRole(setup: RemoteDescription['setup']): types.DtlsRole {
  return setup === 'passive' ? 'server' : 'client';
}

/** What mediasoup counts with: seconds, in one byte, where none would be for ever. */
const MAX_CONSENT_SECONDS = 255;

/** After how many seconds without a word of it mediasoup is to take a peer for gone. */
export function consentTimeout(timeoutMs: number): number {
  return Math.min(MAX_CONSENT_SECONDS, Math.max(1, Math.round(timeoutMs / 1000)));
}

export interface LinkOptions {
  readonly way: Way;
  /** How long a peer may go without a check of the way (ICE) before it counts as gone. */
  readonly timeoutMs: number;
  /** Bits per second that the way to the peer is taken to carry before anything is known of it. */
  readonly initialBitrate: number;
  /** There are data channels: bytes of the largest message each way. */
  readonly dataChannels?: { readonly send: number; readonly receive: number };
}

interface LinkEvents {
  /** DTLS is up: media flows. */
  connected: [];
  /** The peer has gone. @param lost the media worker is gone, not the peer: it can come back at once */
  gone: [reason: string, lost: boolean];
}

/** ICE and DTLS with one peer, on one worker. Closed by its owner, also after `gone`. */
export class PeerLink extends EventEmitter<LinkEvents> {
  readonly transport: types.WebRtcTransport;
  readonly #worker: MediaWorker;
  readonly #way: Way;

  private constructor(transport: types.WebRtcTransport, worker: MediaWorker, way: Way) {
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

  /** @throws mediaUnavailable when the worker dies meanwhile */
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

  /** Tells the peer's end of DTLS. @throws mediaUnavailable when the link is closed */
  connect({ fingerprint, role }: PeerEnd): Promise<void> {
    return this.ask((transport) => transport.connect({ dtlsParameters: { role, fingerprints: [fingerprint] } }));
  }

  /** New ICE credentials, for a peer whose network changed. @throws mediaUnavailable when the link is closed */
  restartIce(): Promise<types.IceParameters> {
    return this.ask((transport) => transport.restartIce());
  }

  /** Asks the worker, whose answer counts only while the link lives. @throws mediaUnavailable */
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
