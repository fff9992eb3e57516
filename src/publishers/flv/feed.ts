import { configTag, metadataOf } from '../../containers/flv/stream-start.ts';
import { audioTagHead, videoTagHead } from '../../containers/flv/tag-head.ts';
import { delayed } from '../../core/delayed-stream.ts';
import { GopCache } from '../../core/gop-cache.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Packet } from '../../core/packet.ts';
import type { Consumer, Reader, ReaderLimits } from '../../core/reader.ts';
import { Stream } from '../../core/stream.ts';
import { toSeconds } from '../../core/timebase.ts';
import { eventsBeside, isMedia, type MediaTrack, type Track } from '../../core/track.ts';
import { encodeAmf0 } from '../../protocols/rtmp/amf0.ts';
import { MessageType } from '../../protocols/rtmp/message.ts';
import { FeedViewers } from '../feed-viewers.ts';

/**
 * Puts the body of a tag into the form that all viewers of a feed get.
 * @param type of an FLV tag, which is that of an RTMP message
 * @param time milliseconds
 * @param body in pieces
 */
export type Frame = (type: number, time: number, body: readonly Buffer[]) => Buffer;

/** Limits of what a new viewer gets at once; one of a stream with longer GOPs starts at the next key frame. */
const START_LIMITS: ReaderLimits = { bytes: 8 * 1024 * 1024, seconds: 10 };

export interface FlvFeedOptions {
  readonly kind: 'rtmp';
  /** Tracks for the viewers, the default one of a kind first. */
  readonly choose: (tracks: readonly Track[]) => readonly MediaTrack[];
  readonly frame: Frame;
  /** Delay after the output, in milliseconds. */
  readonly delayMs: number;
  /** Packets of the output from its last key frame on. */
  readonly start: GopCache | undefined;
  readonly onEnd: () => void;
}

/**
 * Tags of one choice of tracks of an output stream, made once for all its viewers: a stream whose packets hold whole tags. Times
 * begin at 0 with the feed. Closes with its last viewer.
 */
export class FlvFeed implements Consumer {
  readonly #options: FlvFeedOptions;
  /** The output, possibly delayed. */
  readonly #source: Stream;
  readonly #stream: Stream;
  readonly #viewers: FeedViewers;
  readonly #cache = new GopCache(START_LIMITS);
  readonly #reader: Reader;
  /** Enhanced RTMP's ids of the tracks, by their ids in the stream. */
  #trackIds = new Map<number, number>();
  /** Milliseconds of the first packet, which becomes 0. */
  #begin: number | undefined;

  constructor(output: OutputStream, options: FlvFeedOptions) {
    this.#options = options;
    this.#source = delayed(output, options.delayMs);
    this.#stream = new Stream(output.name, output.counters);
    this.#viewers = new FeedViewers({
      output,
      feed: this.#stream,
      kind: options.kind,
      onLast: () => this.close('no viewers are left'),
    });
    this.#select();
    this.#source.on('tracks', this.#select);
    options.start?.replay((packet) => this.packet(packet));
    this.#reader = this.#source.read(this);
  }

  get tracks(): readonly Track[] {
    return this.#stream.tracks;
  }

  get hasVideo(): boolean {
    return this.#stream.tracks.some(({ type }) => type === 'video');
  }

  /** As `FeedViewers.attach`. */
  attach(viewer: Consumer): { reader: Reader; detach: () => void } {
    return this.#viewers.attach(viewer);
  }

  /** Hands over the tags from the last key frame on. */
  replay(take: (packet: Packet) => void): void {
    this.#cache.replay(take);
  }

  packet(packet: Packet): void {
    const { track, data } = packet;
    const trackId = this.#trackIds.get(track.id);
    if (trackId === undefined) return;
    const time = this.timeOf(packet);
    const framed = { ...packet, data: this.#options.frame(typeOf(track), time, [...headOf(packet, trackId), data]) };
    this.#cache.packet(framed);
    this.#stream.write(framed);
  }

  /** Time of a packet in the tags, in milliseconds. */
  timeOf({ dts, track }: Pick<Packet, 'dts' | 'track'>): number {
    const at = toSeconds(dts, track.timebase) * 1000;
    this.#begin ??= at;
    return Math.max(0, Math.round(at - this.#begin));
  }

  /** Tag that describes all tracks; its time is 0, as players take others for text. */
  metadata(): Buffer {
    const body = encodeAmf0('onMetaData', metadataOf(this.#stream.tracks));
    return this.#options.frame(MessageType.DataAmf0, 0, [body]);
  }

  /** Tag that starts a track; undefined for one that needs none. */
  config(track: Track, time: number): Buffer | undefined {
    if (!isMedia(track)) return undefined;
    const body = configTag(track, this.#trackIds.get(track.id));
    return body.length === 0 ? undefined : this.#options.frame(typeOf(track), time, body);
  }

  /** Ends every viewer. Idempotent. */
  close(reason: string): void {
    if (this.#stream.closed) return;
    this.#reader.close();
    this.#source.off('tracks', this.#select);
    this.#options.onEnd();
    this.#stream.close(reason);
  }

  readonly #select = (): void => {
    const { tracks } = this.#source;
    const media = this.#options.choose(tracks);
    const events = eventsBeside(media, tracks).filter(({ codec }) => codec === 'AMF');
    const ids = (type: Track['type']) =>
      media.filter((track) => track.type === type).map(({ id }, index) => [id, index] as const);
    this.#trackIds = new Map([...ids('video'), ...ids('audio'), ...events.map(({ id }) => [id, 0] as const)]);
    this.#stream.setTracks([...media, ...events]);
  };
}

function typeOf({ type }: Track): number {
  if (type === 'video') return MessageType.Video;
  return type === 'audio' ? MessageType.Audio : MessageType.DataAmf0;
}

function headOf({ track, key, pts, dts }: Packet, trackId: number): Buffer[] {
  if (track.type === 'audio') return [audioTagHead(track.codec, 'frame', trackId)];
  if (track.type !== 'video') return [];
  const later = Math.round(toSeconds(pts - dts, track.timebase) * 1000);
  return [videoTagHead(track.codec, 'frame', key !== false, later, trackId)];
}
