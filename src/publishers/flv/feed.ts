import { configTag, metadataOf } from '../../containers/flv/stream-start.ts';
import { audioTagHead, videoTagHead } from '../../containers/flv/tag-head.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Packet } from '../../core/packet.ts';
import { toSeconds } from '../../core/timebase.ts';
import { eventsBeside, isMedia, sameFormat, type MediaTrack, type Track } from '../../core/track.ts';
import { encodeAmf0 } from '../../protocols/rtmp/amf0.ts';
import { MessageType } from '../../protocols/rtmp/message.ts';
import { SharedFeed, type SharedFeedOptions } from '../shared-feed.ts';

/**
 * Puts the body of a tag into the form that all viewers of a feed get.
 * @param type of an FLV tag, which is that of an RTMP message
 * @param time milliseconds
 * @param body in pieces
 */
export type Frame = (type: number, time: number, body: readonly Buffer[]) => Buffer;

export interface FlvFeedOptions extends Omit<SharedFeedOptions, 'keepsStart'> {
  /** Tracks for the viewers, the default one of a kind first. */
  readonly choose: (tracks: readonly Track[]) => readonly MediaTrack[];
  readonly frame: Frame;
}

/** Tags of one choice of tracks of an output stream. Times begin at 0 with the feed. */
export class FlvFeed extends SharedFeed {
  readonly #options: FlvFeedOptions;
  /** Enhanced RTMP's ids of the tracks, by their ids in the stream. */
  #trackIds = new Map<number, number>();
  /** Milliseconds of the first packet, which becomes 0. */
  #begin: number | undefined;

  constructor(output: OutputStream, options: FlvFeedOptions) {
    super(output, { ...options, keepsStart: true });
    this.#options = options;
    this.begin();
  }

  packet(packet: Packet): void {
    const { track, data } = packet;
    const trackId = this.#trackIds.get(track.id);
    if (trackId === undefined) return;
    // of sources whose audio comes behind their video
    if (track.type === 'audio' && this.#precedes(packet)) return;
    const time = this.#timeOf(packet);
    const { frame } = this.#options;
    this.share({ ...packet, data: frame(typeOf(track), time, [...headOf(packet, trackId), data]) });
  }

  /** Metadata, and the configurations of tracks that a viewer does not know: of all of them at first. */
  announce(packet: Packet, known: Map<number, Track>): Buffer[] {
    const { track } = packet;
    const before = known.get(track.id);
    const isFirst = known.size === 0;
    known.set(track.id, track);
    if (!isMedia(track) || (before !== undefined && sameFormat(before, track))) return [];
    const time = this.#timeOf(packet);
    const tracks = isFirst ? this.tracks.map((one) => (one.id === track.id ? track : one)) : [track];
    const configs = tracks.map((one) => {
      known.set(one.id, one);
      return this.#config(one, time);
    });
    return [this.#metadata(), ...configs.filter((config) => config !== undefined)];
  }

  protected select(tracks: readonly Track[]): readonly Track[] {
    const media = this.#options.choose(tracks);
    const events = eventsBeside(media, tracks).filter(({ codec }) => codec === 'AMF');
    const ids = (type: Track['type']) =>
      media.filter((track) => track.type === type).map(({ id }, index) => [id, index] as const);
    this.#trackIds = new Map([...ids('video'), ...ids('audio'), ...events.map(({ id }) => [id, 0] as const)]);
    return [...media, ...events];
  }

  /** Whether a packet is earlier than the first one. */
  #precedes({ dts, track }: Packet): boolean {
    return this.#begin !== undefined && toSeconds(dts, track.timebase) * 1000 < this.#begin;
  }

  /** Time of a packet in the tags, in milliseconds. */
  #timeOf({ dts, track }: Pick<Packet, 'dts' | 'track'>): number {
    const at = toSeconds(dts, track.timebase) * 1000;
    this.#begin ??= at;
    return Math.max(0, Math.round(at - this.#begin));
  }

  /** Tag that describes all tracks; its time is 0, as players take others for text. */
  #metadata(): Buffer {
    const body = encodeAmf0('onMetaData', metadataOf(this.tracks));
    return this.#options.frame(MessageType.DataAmf0, 0, [body]);
  }

  /** Tag that starts a track; undefined for one that needs none. */
  #config(track: Track, time: number): Buffer | undefined {
    if (!isMedia(track)) return undefined;
    const body = configTag(track, this.#trackIds.get(track.id));
    return body.length === 0 ? undefined : this.#options.frame(typeOf(track), time, body);
  }
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
