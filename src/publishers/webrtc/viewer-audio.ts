import type { Packet } from '../../core/packet.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { AudioTrack, MediaTrack } from '../../core/track.ts';
import { Reports } from '../../webrtc/feed/reports.ts';
import type { Outlet } from '../../webrtc/feed/outlet.ts';
import { TrackFeed, type FeedOptions } from '../../webrtc/feed/track-feed.ts';

/** Rounding of times that follow each other. */
const TOLERANCE_SECONDS = 0.001;
/** A step back beyond this is a jump of the source. */
const JUMP_SECONDS = 2;

/** Audio of one viewer, who can choose among several tracks: one RTP stream, whatever the track. */
export class ViewerAudio {
  readonly #outlets = new Set<Outlet>();
  readonly #feed: TrackFeed;
  readonly #reports: Reports;
  #track: AudioTrack;
  /** Seconds at which the media sent so far ends. */
  #end = -Infinity;

  constructor(track: AudioTrack, options: FeedOptions) {
    this.#track = track;
    this.#feed = new TrackFeed(track.codec, this.#outlets, options);
    this.#reports = new Reports([this.#feed], this.#outlets);
  }

  get ssrc(): number {
    return this.#feed.ssrc;
  }

  open(outlet: Outlet): void {
    this.#outlets.add(outlet);
    this.#reports.restart();
  }

  /** Goes on with another track of the same codec. */
  select(track: AudioTrack): void {
    this.#track = track;
  }

  /** Sends a packet of the chosen track, unless an earlier choice has been sent up to that time. */
  take(packet: Packet): void {
    const { id, codec } = packet.track;
    if (id !== this.#track.id || codec !== this.#track.codec) return;
    const { timebase } = packet.track as MediaTrack;
    const start = toSeconds(packet.pts, timebase);
    if (start < this.#end - TOLERANCE_SECONDS && start > this.#end - JUMP_SECONDS) return;
    this.#end = start + toSeconds(packet.duration, timebase);
    const now = Date.now();
    this.#feed.send(packet, now);
    this.#reports.tick(now);
  }
}
