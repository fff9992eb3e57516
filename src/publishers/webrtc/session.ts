import { EventEmitter } from 'node:events';
import type { types } from 'mediasoup';
import { Flow } from '../../core/counters.ts';
import type { Session } from '../../core/session.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Track } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import type { HostCandidate, TransportChoice } from '../../webrtc/candidate.ts';
import type { RtpCodec } from '../../webrtc/codecs.ts';
import { consume } from '../../webrtc/consume.ts';
import { named } from '../../webrtc/declared.ts';
import type { DataChannelMedia, SendingMedia } from '../../webrtc/local-description.ts';
import type { MediaWorker } from '../../webrtc/media-worker.ts';
import { PeerLink, type PeerEnd } from '../../webrtc/peer-link.ts';
import { TransportMeter } from '../../webrtc/transport-meter.ts';
import type { SessionEnd } from '../../webrtc/signalling/handler.ts';
import type { EventPlan, MediaPlan } from './agreement.ts';
import type { EventOutlet } from './event-feed.ts';
import { initialBitrate } from './layer-control.ts';
import { ReceiverReports } from './receiver-reports.ts';
import { RenditionChoice, type SentMedia } from './rendition-choice.ts';
import type { PlayableRendition, Selection } from './selection.ts';
import type { ViewerOutlet } from './viewer-outlet.ts';
import type { StreamPublisher } from './stream-publisher.ts';

interface SessionEvents {
  /** DTLS is up: media flows. */
  connected: [];
  /** @param auto it is chosen by the estimate of the network */
  rendition: [rendition: PlayableRendition, auto: boolean];
  close: [reason: string, end: SessionEnd];
}

/** Limit of a message from a viewer, from which none is expected. */
const MAX_RECEIVED_BYTES = 16 * 1024;

interface Media extends SentMedia {
  readonly mid: string;
  readonly codec: RtpCodec;
  readonly outlet: ViewerOutlet;
}

interface ViewerEnd extends PeerEnd {
  /** True if it reports arrivals in the agreed way. */
  readonly reports: boolean;
}

/**
 * Session of one viewer: a transport with up to one video and one audio consumer, and events if it asked for them. Listed on its
 * stream from construction to close.
 */
export class WebrtcSession extends EventEmitter<SessionEvents> implements Session {
  readonly id: string;
  readonly kind = 'webrtc';
  readonly createdTime = Date.now();
  readonly out = new Flow(this.createdTime);
  readonly selection: Selection;
  readonly #publisher: StreamPublisher;
  readonly #worker: MediaWorker;
  readonly #way: TransportChoice;
  readonly #undo: () => void;
  readonly #media: Media[] = [];
  /** Kinds that are sent, or are about to be. */
  readonly #kinds = new Set<MediaPlan['kind']>();
  #events: { readonly outlet: EventOutlet; readonly media: Omit<DataChannelMedia, 'sctpPort'> } | undefined;
  #link: PeerLink | undefined;
  #choice: RenditionChoice | undefined;
  #meter: TransportMeter | undefined;
  #receiver: ReceiverReports | undefined;
  #connected = false;
  /** Media was sent at the last check. */
  #flows = false;
  #closed = false;

  constructor(id: string, publisher: StreamPublisher, selection: Selection, worker: MediaWorker, way: TransportChoice) {
    super();
    this.id = id;
    this.selection = selection;
    this.#publisher = publisher;
    this.#worker = worker;
    this.#way = way;
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

  get auto(): boolean {
    return this.#choice?.auto ?? false;
  }

  get media(): readonly SendingMedia[] {
    return this.#media.map(({ kind, mid, codec, consumer }) => {
      return { kind, mid, rtpParameters: named(consumer.rtpParameters, codec) };
    });
  }

  get events(): Omit<DataChannelMedia, 'sctpPort'> | undefined {
    return this.#events?.media;
  }

  get candidates(): readonly HostCandidate[] {
    return this.#worker.candidatesOn(this.#way);
  }

  get iceParameters(): types.IceParameters {
    return this.#open().iceParameters;
  }

  get fingerprint(): types.DtlsFingerprint {
    return this.#open().fingerprint;
  }

  /**
   * Makes the transport and its consumers, which wait for DTLS.
   * @throws mediaUnavailable when the session or its worker is closed before the end
   */
  async open(plans: readonly MediaPlan[], events?: EventPlan): Promise<void> {
    for (const { kind } of plans) this.#kinds.add(kind);
    try {
      const link = await PeerLink.open(this.#worker, {
        way: this.#way,
        timeoutMs: this.#publisher.config.timeout,
        initialBitrate: initialBitrate(this.stream, this.selection.video),
        ...(events && { dataChannels: { send: events.maxMessageSize, receive: MAX_RECEIVED_BYTES } }),
      });
      this.#link = link;
      if (this.#closed) {
        link.close();
        throw kilnError('mediaUnavailable');
      }
      this.#meter = new TransportMeter(link.transport, 'bytesSent', (bytes) => this.#count(bytes));
      link.once('connected', () => this.#start());
      link.on('gone', (reason, lost) => this.close(reason, lost ? 'lost' : 'over'));
      for (const plan of plans) await this.#add(link.transport, plan);
      if (events !== undefined) await this.#addEvents(link.transport, events);
    } catch (error) {
      const lost = this.#closed || this.#worker.closed;
      this.close('the session could not be opened');
      throw lost ? kilnError('mediaUnavailable') : error;
    }
  }

  /** Gives the transport the viewer's end of DTLS. @throws mediaUnavailable when the session is closed */
  async connect({ reports, ...end }: ViewerEnd): Promise<void> {
    const link = this.#open();
    this.#choice ??= this.#choose(link.transport, reports);
    await link.connect(end);
  }

  /** Renews the ICE credentials, for a viewer whose network changed. @throws mediaUnavailable when the session is closed */
  async restartIce(): Promise<types.IceParameters> {
    return await this.#open().restartIce();
  }

  /** Tests whether `tracks` has, for every kind that is sent, a selected track in the agreed codec. */
  isServedBy(tracks: readonly Track[]): boolean {
    return [...this.#kinds].every((kind) => {
      return this.selection[kind].some((sent) =>
        tracks.some(({ id, codec }) => id === sent.id && codec === sent.codec),
      );
    });
  }

  /** Stops sending a section that the viewer's answer has rejected. */
  drop(mid: string): void {
    const index = this.#media.findIndex((media) => media.mid === mid);
    const [dropped] = index < 0 ? [] : this.#media.splice(index, 1);
    if (dropped === undefined) return;
    this.#kinds.delete(dropped.kind);
    dropped.consumer.close();
    dropped.outlet.release();
  }

  /** Applies a viewer's request; the event `rendition` follows when it is done. Has no effect after the viewer has left. */
  async changeRendition(name: string | undefined, auto: boolean | undefined): Promise<void> {
    try {
      await this.#choice?.request(name, auto);
    } catch (error) {
      if (!this.#closed && !this.#worker.closed) throw error;
    }
  }

  /** Called once a second: brings the byte counts up to date, and reads receiver reports. */
  poll(): void {
    if (!this.#connected) return;
    this.#meter?.poll();
    this.#receiver?.tick();
  }

  kick(): void {
    this.stream.input.kicked.add(this.id);
    this.close('the viewer was disconnected by the management API');
  }

  /** Idempotent. */
  close(reason: string, end: SessionEnd = 'over'): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#worker.sessions--;
    this.#choice?.close();
    for (const { outlet } of this.#media) outlet.release();
    this.#events?.outlet.release();
    this.#link?.close();
    this.#undo();
    this.emit('close', reason, end);
    this.removeAllListeners();
  }

  #open(): PeerLink {
    if (this.#closed || this.#link === undefined) throw kilnError('mediaUnavailable');
    return this.#link;
  }

  async #add(transport: types.WebRtcTransport, { kind, mid, codec, extensions }: MediaPlan): Promise<void> {
    const { feed } = this.#publisher;
    const { video, audio } = this.selection;
    const outlet =
      kind === 'audio' && audio.length > 1
        ? await feed.ownOutlet(audio, this.#worker, codec)
        : await feed.outlet(kind === 'video' ? video : audio, this.#worker, codec);
    try {
      const consumer = await consume(transport, outlet.producer, { mid, codec, extensions });
      consumer.on('producerclose', () =>
        this.close('the stream is no longer sent', outlet.worker.closed ? 'lost' : 'over'),
      );
      if (this.#closed) throw kilnError('mediaUnavailable');
      this.#media.push({
        kind,
        mid,
        codec,
        outlet,
        consumer,
        tracks: outlet.tracks,
        select: outlet.select,
        beforeKey: outlet.beforeKey,
      });
    } catch (error) {
      outlet.release();
      throw error;
    }
  }

  async #addEvents(transport: types.WebRtcTransport, { mid, protocol }: EventPlan): Promise<void> {
    const outlet = await this.#publisher.feed.events.outlet(
      this.#worker,
      this.selection.playlist.hidesSubtitles === true,
    );
    try {
      await transport.consumeData({ dataProducerId: outlet.producer.id, ordered: true });
      if (this.#closed) throw kilnError('mediaUnavailable');
      this.#events = { outlet, media: { mid, protocol, maxMessageSize: MAX_RECEIVED_BYTES } };
    } catch (error) {
      outlet.release();
      throw error;
    }
  }

  #start(): void {
    this.#connected = true;
    this.stream.counters.viewing.joined('webrtc', Math.max(0, Date.now() - this.createdTime) / 1000);
    this.emit('connected');
    // one transport carries both: the video has most of the packets
    const { consumer, kind } = this.#media.find((media) => media.kind === 'video') ?? this.#media[0] ?? {};
    if (consumer !== undefined)
      this.#receiver = new ReceiverReports(consumer, (reception) => {
        const track = kind && this.#choice?.current[kind];
        this.#publisher.received(reception, track && `${kind}_${track.id}`);
      });
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

  #count(bytes: number): void {
    if (bytes <= 0) {
      if (this.#flows) this.stream.counters.viewing.stalls.webrtc++;
      this.#flows = false;
      return;
    }
    this.#flows = true;
    this.out.add(bytes, Date.now());
    this.stream.counters.sentTo('webrtc', bytes);
  }
}
