import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import type { PublisherGrant } from '../../access/publisher-grant.ts';
import type { WebrtcProviderConfig } from '../../config/model.ts';
import type { InputStream } from '../../core/input-stream.ts';
import { kilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { HostCandidate } from '../../webrtc/candidate.ts';
import type { LiveProducers } from '../../webrtc/live-producers.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import { connectTimeout } from '../../webrtc/pending-peers.ts';
import type { PeerEnd, PeerLink } from '../../webrtc/peer-link.ts';
import type { PeerSession, SessionEnd } from '../../webrtc/signalling/handler.ts';
import { TransportMeter } from '../../webrtc/transport-meter.ts';
import { streamTrackId } from '../intake/track-id.ts';
import type { IngestPlan } from './accepted.ts';
import { Ingest } from './ingest.ts';
import { Reception } from './reception.ts';

interface SessionEvents {
  connected: [];
  close: [reason: string, end: SessionEnd];
}

export interface IngestSessionOptions {
  /** Input stream that the session closes, and ends with. */
  readonly input: InputStream;
  /** Says whether the input was closed because its time was over. */
  readonly grant: Pick<PublisherGrant, 'expired'>;
  readonly config: WebrtcProviderConfig;
  readonly worker: MediaWorker;
  readonly link: PeerLink;
  readonly producers: LiveProducers;
  readonly log: Logger;
}

/** One publisher: a transport whose producers feed an input stream. */
export class IngestSession extends EventEmitter<SessionEvents> implements PeerSession {
  readonly createdTime = Date.now();
  readonly #options: IngestSessionOptions;
  readonly #faults: FaultLog;
  readonly #meter: TransportMeter;
  readonly #reception: Reception;
  #plans: readonly IngestPlan[] = [];
  #ingest: Ingest | undefined;
  #connected = false;
  #heardAt = 0;
  /** Bytes outside all sections since it connected; undefined once they were logged. */
  #unknown: number | undefined = 0;
  #closed = false;

  constructor(options: IngestSessionOptions) {
    super();
    this.#options = options;
    const { input, grant, link, worker, log } = options;
    this.#faults = new FaultLog(log);
    this.#meter = new TransportMeter(link.transport, 'bytesReceived', (bytes, unknown) => {
      if (bytes > 0) this.#heardAt = performance.now();
      input.counters.received(bytes);
      this.#noteUnknown(unknown);
    });
    this.#reception = new Reception({
      worker,
      transport: link.transport,
      onProducer: (plan, producer) => this.#offer(plan, producer),
      onLost: (reason) => this.close(reason, worker.closed ? 'lost' : 'over'),
    });
    worker.sessions++;
    link.once('connected', () => this.#begin());
    link.on('gone', (reason, lost) => this.close(reason, lost ? 'lost' : 'over'));
    input.once('close', (reason) => this.close(reason, grant.expired ? 'expired' : 'over'));
    if (input.closed) this.close('the stream has ended');
  }

  get closed(): boolean {
    return this.#closed;
  }

  get connected(): boolean {
    return this.#connected;
  }

  get input(): InputStream {
    return this.#options.input;
  }

  /** Milliseconds since anything arrived, ICE checks included; 0 before it connected. */
  get silence(): number {
    return this.#connected ? performance.now() - this.#heardAt : 0;
  }

  get media(): readonly IngestPlan[] {
    return this.#plans;
  }

  get candidates(): readonly HostCandidate[] {
    return this.#options.link.candidates;
  }

  get iceParameters(): types.IceParameters {
    return this.#options.link.iceParameters;
  }

  get fingerprint(): types.DtlsFingerprint {
    return this.#options.link.fingerprint;
  }

  restartIce(): Promise<types.IceParameters> {
    return this.#options.link.restartIce();
  }

  /**
   * Creates the receivers of the publisher's packets, and connects the transport.
   * @throws mediaUnavailable when the session or its worker closes before that; notAcceptable when the worker refuses a
   * plan
   */
  async accept(plans: readonly IngestPlan[], end: PeerEnd): Promise<void> {
    const { worker, link } = this.#options;
    this.#plans = plans;
    try {
      await this.#reception.take(plans);
      await link.connect(end);
    } catch (error) {
      const lost = this.#closed || worker.closed;
      this.close('the session could not be opened');
      throw lost ? kilnError('mediaUnavailable') : error;
    }
  }

  /** Updates byte counts, and ends a session that did not connect in time. @param now milliseconds since the Unix epoch */
  tick(now: number): void {
    if (this.#connected) this.#meter.poll();
    else if (now - this.createdTime > connectTimeout(this.#options.config.timeout))
      this.close('the publisher did not connect in time');
  }

  close(reason: string, end: SessionEnd = 'over'): void {
    if (this.#closed) return;
    this.#closed = true;
    const { worker, link, input, log } = this.#options;
    worker.sessions--;
    input.off('keyWanted', this.#onKeyWanted);
    this.#ingest?.close();
    this.#reception.close();
    link.close();
    input.close(reason);
    this.#faults.close();
    log[end === 'lost' ? 'warn' : 'info']({ reason }, `the WebRTC publisher has gone: ${reason}`);
    this.emit('close', reason, end);
    this.removeAllListeners();
  }

  /** Lets viewers have the publisher's RTP. */
  #offer(plan: IngestPlan, producer: types.Producer): void {
    const { worker, input, producers } = this.#options;
    for (let encoding = 0; encoding < Math.max(1, plan.rids.length); encoding++) {
      producers.set(input, streamTrackId(plan.kind, encoding), { worker, producer, encoding });
    }
  }

  #begin(): void {
    const { input, config, worker, log } = this.#options;
    this.#connected = true;
    this.#heardAt = performance.now();
    const ingest = new Ingest({
      sink: {
        setTracks: (tracks) => input.setTracks(tracks),
        write: (packet) => input.write(packet),
        lost: (packets) => input.counters.lost(packets),
        trouble: (code, description) => void input.emit('trouble', code, description),
      },
      config,
      plans: this.#plans,
      faults: this.#faults,
      onKeyWanted: (plan) => this.#reception.requestKeyFrame(plan),
      onFailure: (reason) => this.close(reason),
    });
    this.#ingest = ingest;
    input.on('keyWanted', this.#onKeyWanted);
    this.#reception.feed(ingest);
    log.debug({ worker: worker.index }, 'the WebRTC publisher is connected');
    this.emit('connected');
  }

  #noteUnknown(bytes: number): void {
    if (this.#unknown === undefined || this.#ingest === undefined) return;
    this.#unknown += bytes;
    const sections = this.#ingest.silent;
    if (this.#unknown < MANY_BYTES || sections.length === 0) return;
    this.#unknown = undefined;
    this.#options.log.warn(
      { sections },
      'the publisher sends packets that are of no section of its offer, and are ignored',
    );
  }

  readonly #onKeyWanted = (): void => this.#ingest?.wantKeys();
}

const MANY_BYTES = 20_000;
