import { randomUUID } from 'node:crypto';
import type { types } from 'mediasoup';
import type { Packet } from '../core/packet.ts';
import { isMedia, type MediaTrack, type Track } from '../core/track.ts';
import { KilnError, kilnError } from '../errors.ts';
import { MediaClock } from '../protocols/rtp/media-clock.ts';
import { Call, type Caller } from '../webrtc/call/call.ts';
import { isRoutable, isTelephony, offeredCodec } from '../webrtc/codecs.ts';
import { consume } from '../webrtc/consume.ts';
import { senderExtensions } from '../webrtc/extensions.ts';
import { openOutlet, type Outlet } from '../webrtc/feed/outlet.ts';
import { SourceFeed } from '../webrtc/feed/source-feed.ts';
import type { RemoteMedia } from '../webrtc/remote-description.ts';
import { whipEndpoint } from './destination.ts';
import { PushError } from './error.ts';
import type { OpenSink, Sink, SinkOptions } from './sink.ts';

/** Pushes to endpoints of WHIP (RFC 9725) that the guard allows. A server's certificate is verified. */
export function whipSink(caller: Caller): OpenSink {
  return async ({ url, streamKey }, options) => {
    const endpoint = whipEndpoint(url.href, streamKey);
    return new WhipSink(await Call.open(caller, endpoint), options, endpoint.token ?? '');
  };
}

/** A track that is sent. */
interface Sent {
  readonly track: MediaTrack;
  readonly mid: string;
  readonly feed: SourceFeed;
  readonly outlet: Outlet;
  readonly consumer: types.Consumer;
}

/** A stream published to a WHIP server: at most one video and one audio track. */
class WhipSink implements Sink {
  readonly isSingle = true;
  /** Servers take the time of arrival for that of the media until they have a sender report. */
  readonly takesBursts = false;
  readonly #call: Call;
  readonly #options: SinkOptions;
  readonly #token: string;
  readonly #cname = randomUUID();
  readonly #clock = new MediaClock();
  #tracks: readonly MediaTrack[] = [];
  #sent: Sent[] = [];
  /** Packets that have come before the server took the stream. */
  #early: Packet[] | undefined = [];
  #closed = false;
  readonly #onAbort = (): void => this.close();

  constructor(call: Call, options: SinkOptions, token: string) {
    this.#call = call;
    this.#options = options;
    this.#token = token;
    call.on('gone', (reason) => this.#fail(reason));
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal.aborted) this.close();
  }

  get sentBytes(): number {
    return this.#call.sentBytes;
  }

  objection(track: Track): string | undefined {
    const { codec } = track;
    if (!isMedia(track) || !isRoutable(track) || isTelephony(track.codec)) return `WebRTC does not carry ${codec}`;
    // what goes is what every WHIP server takes
    return codec === 'H265' ? 'few WHIP servers take H265' : undefined;
  }

  setTracks(tracks: readonly Track[]): Promise<void> | void {
    const media = tracks.filter(isMedia);
    const before = this.#tracks;
    this.#tracks = media;
    if (before.length === 0) return this.#publish(media);
    const isSame =
      media.length === before.length &&
      media.every(({ id, codec }, at) => before[at]?.id === id && before[at].codec === codec);
    // a session has one offer (RFC 9725 section 4.4)
    if (!isSame) throw new PushError('the tracks have changed, which takes another connection');
  }

  write(packet: Packet): boolean {
    if (this.#early !== undefined) {
      this.#early.push(packet);
      return false;
    }
    this.#sent.find(({ track }) => track.id === packet.track.id)?.feed.take(packet);
    return true;
  }

  finish(): void {
    this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    for (const { feed, outlet } of this.#sent) {
      feed.close();
      outlet.direct.close();
    }
    this.#call.close();
  }

  /** @throws PushError when the server does not take the stream */
  async #publish(media: readonly MediaTrack[]): Promise<void> {
    try {
      for (const [index, track] of media.entries()) await this.#add(track, `${index}`);
      const sections = this.#sent.map(({ track, mid, consumer }) => {
        return { mid, kind: track.type, rtpParameters: consumer.rtpParameters };
      });
      const answer = await this.#call.offer(sections, this.#cname);
      this.#leaveOut(answer.media);
      await this.#call.connect(answer);
      for (const { consumer } of this.#sent) await consumer.resume();
    } catch (error) {
      const isLost = this.#closed || this.#call.worker.closed;
      this.close();
      if (isLost) throw new PushError('the connection or its media worker was closed');
      if (error instanceof PushError || error instanceof KilnError) throw new PushError(this.#masked(error.message));
      throw error;
    }
    if (this.#closed) return;
    for (const { feed, outlet } of this.#sent) feed.addOutlet(outlet);
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const packet of early) this.write(packet);
    this.#options.writable();
  }

  async #add(track: MediaTrack, mid: string): Promise<void> {
    const { worker, link } = this.#call;
    const codec = offeredCodec(track.codec, true, 'All');
    const feed = new SourceFeed([track], {
      cname: this.#cname,
      clock: this.#clock,
      playoutDelay: undefined,
      onFault: (error) => this.#options.leftOut(error.message),
    });
    const outlet = await openOutlet(worker, codec, { ssrcs: feed.ssrcs, extensions: [], cname: this.#cname });
    try {
      const wanted = senderExtensions({ bandwidthEstimation: 'All', playoutDelay: undefined });
      const extensions = wanted.filter(({ kind }) => kind === track.type);
      const consumer = await consume(link.transport, outlet.producer, { mid, codec, extensions });
      consumer.on('producerclose', () => this.#fail('the media worker lost the stream'));
      this.#sent.push({ track, mid, feed, outlet, consumer });
      if (this.#closed) throw kilnError('mediaUnavailable');
    } catch (error) {
      feed.close();
      outlet.direct.close();
      throw error;
    }
  }

  /** Leaves out what the answer does not take. @throws PushError when that is everything */
  #leaveOut(answered: readonly RemoteMedia[]): void {
    const [taken, left]: [Sent[], Sent[]] = [[], []];
    for (const sent of this.#sent) {
      const section = answered.find(({ mid }) => mid === sent.mid);
      const payloadType = sent.consumer.rtpParameters.codecs[0]?.payloadType;
      const isTaken = section?.receives && section.codecs.some((codec) => codec.payloadType === payloadType);
      (isTaken ? taken : left).push(sent);
    }
    if (taken.length === 0)
      throw new PushError(`the server does not take ${left.map(({ track }) => track.codec).join(' or ')}`);
    for (const { track, feed, outlet, consumer } of left) {
      this.#options.leftOut(`the server does not take ${track.codec}`);
      // before its producer, whose end is that of the push otherwise
      consumer.close();
      feed.close();
      outlet.direct.close();
    }
    this.#sent = taken;
  }

  #fail(reason: string): void {
    if (this.#closed) return;
    this.close();
    this.#options.failed(this.#masked(reason));
  }

  /** Servers quote the token. */
  #masked(reason: string): string {
    return this.#token === '' ? reason : reason.replaceAll(this.#token, '...');
  }
}
