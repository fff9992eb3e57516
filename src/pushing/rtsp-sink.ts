import { randomUUID } from 'node:crypto';
import { BitstreamError } from '../codecs/bits.ts';
import type { Packet } from '../core/packet.ts';
import { isMedia, type MediaTrack, type Track } from '../core/track.ts';
import { dial } from '../protocols/outbound/dial.ts';
import type { OutboundGuard } from '../protocols/outbound/guard.ts';
import { MediaClock } from '../protocols/rtp/media-clock.ts';
import { payloadFormat } from '../protocols/rtp/payload-format.ts';
import { RtspError } from '../protocols/rtsp/error.ts';
import { interleave } from '../protocols/rtsp/interleaved.ts';
import { RtspPublishingClient } from '../protocols/rtsp/publishing-client.ts';
import { RtspTarget } from '../protocols/rtsp/redirect.ts';
import { REPORT_MS, SentTrack } from '../protocols/rtsp/sent-track.ts';
import { writeDescription } from '../protocols/rtsp/write-description.ts';
import { PushError } from './error.ts';
import type { OpenSink, Sink, SinkOptions } from './sink.ts';

/** Pushes over RTSP, by ANNOUNCE and RECORD, to destinations that the guard allows. */
export function rtspSink(guard: OutboundGuard): OpenSink {
  return async ({ url }, options) => {
    const sink = new RtspSink(options);
    await sink.connect(url.href, guard);
    return sink;
  };
}

/** A stream published to an RTSP server, in the TCP connection of its requests. */
class RtspSink implements Sink {
  readonly isSingle = false;
  /** Servers take the time of arrival for that of the media until they have a sender report. */
  readonly takesBursts = false;
  readonly #options: SinkOptions;
  readonly #clock = new MediaClock();
  readonly #cname = randomUUID();
  #client: RtspPublishingClient | undefined;
  #tracks: SentTrack[] = [];
  /** Packets that have come before the server took the stream. */
  #early: Packet[] | undefined = [];
  readonly #reported = new Set<SentTrack>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #onAbort = (): void => this.close();

  constructor(options: SinkOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** @throws PushError */
  async connect(href: string, guard: OutboundGuard): Promise<void> {
    const { sendMs, writable } = this.#options;
    try {
      this.#client = await RtspPublishingClient.connect(new RtspTarget(href), {
        dial: (host, port) => dial(guard, host, port, this.#options),
        sendMs,
        writable,
        ended: (reason) => this.#fail(reason),
      });
    } catch (error) {
      this.close();
      throw asPushError(error);
    }
    if (this.#closed) this.#client.close();
  }

  get sentBytes(): number {
    return this.#client?.sentBytes ?? 0;
  }

  objection(track: Track): string | undefined {
    return isMedia(track) && payloadFormat(track) !== undefined ? undefined : `RTSP does not carry ${track.codec}`;
  }

  setTracks(tracks: readonly Track[]): Promise<void> | void {
    const media = tracks.filter(isMedia);
    if (this.#tracks.length === 0) return this.#record(media);
    const isSame = media.length === this.#tracks.length && media.every((track, at) => this.#tracks[at]?.covers(track));
    // a session has one description (RFC 2326 section 10.3)
    if (!isSame) throw new PushError('the tracks have changed, which takes another connection');
    for (const [at, track] of media.entries()) {
      const format = payloadFormat(track);
      if (format !== undefined) this.#tracks[at]?.reconfigure(track, format);
    }
  }

  write(packet: Packet): boolean {
    if (this.#early !== undefined) {
      this.#early.push(packet);
      return false;
    }
    const sent = this.#tracks.find(({ track }) => track.id === packet.track.id);
    if (sent === undefined || this.#client === undefined) return true;
    const frame = this.#packetized(sent, packet);
    if (!this.#reported.has(sent)) this.#report(sent);
    return frame.length === 0 || this.#client.send(frame);
  }

  finish(): void {
    this.#leave();
    this.#client?.finish();
  }

  close(): void {
    this.#leave();
    this.#client?.close();
  }

  async #record(media: readonly MediaTrack[]): Promise<void> {
    const client = this.#client as RtspPublishingClient;
    this.#tracks = media.flatMap((track, index) => {
      const format = payloadFormat(track);
      return format === undefined ? [] : [new SentTrack(track, format, index)];
    });
    const address = client.address ?? '0.0.0.0';
    const description = writeDescription({ name: 'Kiln', id: Date.now(), address, base: '', tracks: this.#tracks });
    try {
      await client.record(description, this.#tracks.length);
    } catch (error) {
      throw asPushError(error);
    }
    if (this.#closed) return;
    this.#timer = setInterval(() => this.#tracks.forEach((track) => this.#report(track)), REPORT_MS).unref();
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const packet of early) this.write(packet);
    this.#options.writable();
  }

  /** @throws BitstreamError */
  #packetized(sent: SentTrack, packet: Packet): Buffer {
    try {
      return sent.packetize(packet, this.#clock, Date.now());
    } catch (error) {
      throw error instanceof RangeError ? new BitstreamError(error.message) : error;
    }
  }

  /** Says which time of its media is the present. */
  #report(track: SentTrack): void {
    const report = track.report(Date.now(), this.#cname);
    if (report === undefined || this.#client === undefined) return;
    this.#reported.add(track);
    this.#client.send(interleave(track.channel + 1, report));
  }

  #leave(): void {
    this.#closed = true;
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    clearInterval(this.#timer);
  }

  #fail(reason: string): void {
    this.#leave();
    this.#options.failed(reason);
  }
}

function asPushError(error: unknown): unknown {
  return error instanceof RtspError ? new PushError(error.message) : error;
}
