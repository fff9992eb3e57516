import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import type { Transport } from '../../config/values.ts';
import { Flow } from '../../core/counters.ts';
import type { Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import type { HostCandidate } from '../../webrtc/candidate.ts';
import { receiverCapabilities, type RtpCodec } from '../../webrtc/codecs.ts';
import type { SendingMedia } from '../../webrtc/local-description.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import { initialBitrate } from './layer-control.ts';
import { RenditionChoice, type SentMedia } from './rendition-choice.ts';
import type { PlayableRendition, Selection } from './selection.ts';
import type { ViewerOutlet } from './stream-feed.ts';
import type { StreamPublisher } from './stream-publisher.ts';

/** How a track is sent to this viewer. */
export interface MediaPlan {
  readonly kind: 'video' | 'audio';
  readonly mid: string;
  readonly codec: RtpCodec;
  readonly extensions: readonly types.RtpHeaderExtension[];
}

/** What is agreed with a viewer. */
export interface Agreement {
  readonly selection: Selection;
  readonly plans: readonly MediaPlan[];
}

interface SessionEvents {
  /** DTLS is up: media flows. */
  connected: [];
  /** @param auto it is chosen by what the way to the viewer carries */
  rendition: [rendition: PlayableRendition, auto: boolean];
  /** @param lost the media worker is gone, not the stream: the viewer can come back at once */
  close: [reason: string, lost: boolean];
}

interface Media extends SentMedia {
  readonly mid: string;
  readonly outlet: ViewerOutlet;
}

/** The viewer's end, as it describes itself. */
interface PeerEnd {
  readonly fingerprint: types.DtlsFingerprint;
  readonly role: types.DtlsRole;
  /** It reports what arrives in the way that was agreed. */
  readonly reports: boolean;
}

/**
 * One viewer: a transport with up to one video and one audio consumer. Listed on its stream from construction
 * to close.
 */
export class WebrtcSession extends EventEmitter<SessionEvents> implements Session {
  readonly id: string;
  readonly kind = 'webrtc';
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly selection: Selection;
  readonly #publisher: StreamPublisher;
  readonly #worker: MediaWorker;
  readonly #protocol: Transport | undefined;
  readonly #undo: () => void;
  readonly #media: Media[] = [];
  /** What is, or is about to be, sent. */
  readonly #kinds = new Set<MediaPlan['kind']>();
  #transport: types.WebRtcTransport | undefined;
  #choice: RenditionChoice | undefined;
  #connected = false;
  #polling = false;
  #bytes = 0;
  #closed = false;

  /** @param protocol the only one that the viewer is to be reached over */
  constructor(
    id: string,
    publisher: StreamPublisher,
    selection: Selection,
    worker: MediaWorker,
    protocol: Transport | undefined,
  ) {
    super();
    this.id = id;
    this.selection = selection;
    this.#publisher = publisher;
    this.#worker = worker;
    this.#protocol = protocol;
    this.#worker.sessions++;
    this.#undo = publisher.list(this);
  }

  get closed(): boolean {
    return this.#closed;
  }

  get connected(): boolean {
    return this.#connected;
  }

  get stream(): OutputStream {
    return this.#publisher.stream;
  }

  /** Whether the rendition is chosen by what the way to the viewer carries. */
  get auto(): boolean {
    return this.#choice?.auto ?? false;
  }

  get media(): readonly SendingMedia[] {
    return this.#media.map(({ kind, mid, consumer }) => ({ kind, mid, rtpParameters: consumer.rtpParameters }));
  }

  get candidates(): readonly HostCandidate[] {
    return this.#worker.candidatesOver(this.#protocol);
  }

  get iceParameters(): types.IceParameters {
    return this.#open().iceParameters;
  }

  get fingerprint(): types.DtlsFingerprint {
    const { fingerprints } = this.#open().dtlsParameters;
    return fingerprints.find(({ algorithm }) => algorithm === 'sha-256') as types.DtlsFingerprint;
  }

  /**
   * Makes the transport and its consumers, which wait for DTLS.
   * @throws mediaUnavailable when the session or its worker has been closed meanwhile
   */
  async open(plans: readonly MediaPlan[]): Promise<void> {
    for (const { kind } of plans) this.#kinds.add(kind);
    try {
      const iceConsentTimeout = Math.max(1, Math.round(this.#publisher.config.timeout / 1000));
      const transport = await this.#worker.createWebRtcTransport({
        protocol: this.#protocol,
        iceConsentTimeout,
        initialBitrate: initialBitrate(this.stream, this.selection.video),
      });
      this.#transport = transport;
      if (this.#closed) {
        transport.close();
        throw kilnError('mediaUnavailable');
      }
      this.#listen(transport);
      for (const plan of plans) await this.#add(transport, plan);
    } catch (error) {
      const lost = this.#closed || this.#worker.closed;
      this.close('the session could not be opened');
      throw lost ? kilnError('mediaUnavailable') : error;
    }
  }

  /** Tells the transport the viewer's end of DTLS. @throws mediaUnavailable when the session is closed */
  connect({ fingerprint, role, reports }: PeerEnd): Promise<void> {
    return this.#ask((transport) => {
      this.#choice ??= this.#choose(transport, reports);
      return transport.connect({ dtlsParameters: { role, fingerprints: [fingerprint] } });
    });
  }

  /** New ICE credentials, for a viewer whose network changed. @throws mediaUnavailable when the session is closed */
  restartIce(): Promise<types.IceParameters> {
    return this.#ask((transport) => transport.restartIce());
  }

  /** Whether of every kind that this viewer is sent there is something among `tracks`, in the codec that was agreed on. */
  isServedBy(tracks: readonly Track[]): boolean {
    return [...this.#kinds].every((kind) => {
      return this.selection[kind].some((sent) => tracks.some(({ id, codec }) => id === sent.id && codec === sent.codec));
    });
  }

  /** Stops sending what the viewer's answer has refused. */
  drop(mid: string): void {
    const index = this.#media.findIndex((media) => media.mid === mid);
    const [dropped] = index < 0 ? [] : this.#media.splice(index, 1);
    if (dropped === undefined) return;
    this.#kinds.delete(dropped.kind);
    dropped.consumer.close();
    dropped.outlet.release();
  }

  /** Does what the viewer asks; the event `rendition` tells when it is done. Nothing is left to do for one who has gone. */
  async changeRendition(name: string | undefined, auto: boolean | undefined): Promise<void> {
    try {
      await this.#choice?.request(name, auto);
    } catch (error) {
      if (!this.#closed && !this.#worker.closed) throw error;
    }
  }

  /** Brings the byte counts up to date. */
  poll(): void {
    const transport = this.#transport;
    if (!this.#connected || this.#polling || transport === undefined) return;
    this.#polling = true;
    transport.getStats().then(
      ([stats]) => {
        this.#polling = false;
        if (stats !== undefined) this.#count(stats.bytesSent);
      },
      // it fails only with the transport, which closes the session
      () => {
        this.#polling = false;
      },
    );
  }

  kick(): void {
    this.stream.input.kicked.add(this.id);
    this.close('the viewer was disconnected by the management API');
  }

  /** Idempotent. */
  close(reason: string, lost = false): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#worker.sessions--;
    this.#choice?.close();
    for (const { outlet } of this.#media) outlet.release();
    this.#transport?.close();
    this.#undo();
    this.emit('close', reason, lost);
    this.removeAllListeners();
  }

  /** Asks the worker, whose answer counts only while the session lives. @throws mediaUnavailable */
  async #ask<T>(request: (transport: types.WebRtcTransport) => Promise<T>): Promise<T> {
    try {
      const answer = await request(this.#open());
      this.#open();
      return answer;
    } catch (error) {
      throw this.#closed || this.#worker.closed ? kilnError('mediaUnavailable') : error;
    }
  }

  #open(): types.WebRtcTransport {
    if (this.#closed || this.#transport === undefined) throw kilnError('mediaUnavailable');
    return this.#transport;
  }

  #listen(transport: types.WebRtcTransport): void {
    transport.on('routerclose', () => this.close('the media worker died', true));
    transport.on('icestatechange', (state) => {
      if (state === 'disconnected' || state === 'closed') this.close(`ICE is ${state}`);
    });
    transport.on('dtlsstatechange', (state) => {
      if (state === 'failed' || state === 'closed') this.close(`DTLS is ${state}`);
      if (state === 'connected') this.#start();
    });
  }

  async #add(transport: types.WebRtcTransport, { kind, mid, codec, extensions }: MediaPlan): Promise<void> {
    const { feed } = this.#publisher;
    const { video, audio } = this.selection;
    const outlet =
      kind === 'audio' && audio.length > 1
        ? await feed.ownOutlet(audio, this.#worker, codec)
        : await feed.outlet(kind === 'video' ? video : audio, this.#worker, codec);
    try {
      const consumer = await transport.consume({
        producerId: outlet.producer.id,
        rtpCapabilities: receiverCapabilities(codec, extensions),
        paused: true,
        mid,
        enableRtx: true,
      });
      consumer.on('producerclose', () => this.close('the stream is not sent any more', outlet.worker.closed));
      if (this.#closed) throw kilnError('mediaUnavailable');
      this.#media.push({ kind, mid, outlet, consumer, tracks: outlet.tracks, select: outlet.select });
    } catch (error) {
      outlet.release();
      throw error;
    }
  }

  #start(): void {
    this.#connected = true;
    this.emit('connected');
    this.#choice?.start().catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.close(`media could not be sent: ${(error as Error).message}`);
  }

  #choose(transport: types.WebRtcTransport, reports: boolean): RenditionChoice {
    const choice = new RenditionChoice(this.stream, this.selection, { transport, reports, media: this.#media });
    choice.on('rendition', (rendition, auto) => this.emit('rendition', rendition, auto));
    choice.on('fault', (error) => this.#fail(error));
    return choice;
  }

  #count(total: number): void {
    const bytes = total - this.#bytes;
    if (bytes <= 0 || this.#closed) return;
    this.#bytes = total;
    this.out.add(bytes, Date.now());
    this.stream.counters.sent(bytes);
  }
}
