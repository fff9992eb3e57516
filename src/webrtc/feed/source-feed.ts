import type { Packet } from '../../core/packet.ts';
import type { MediaTrack } from '../../core/track.ts';
import { Alignment } from './alignment.ts';
import { Reports } from './reports.ts';
import type { Outlet } from './outlet.ts';
import { TrackFeed, type FeedOptions } from './track-feed.ts';

/** Difference in time that a reader sees between two layers of one instant: see `SourceFeed`. */
const LAYER_STEP_MS = 1;

/**
 * The RTP of one track, or of several video tracks of one codec with the same content: the layers of a simulcast.
 *
 * Where a switch to another layer would not make RTP time go on, mediasoup adds a frame's time, and with every further switch
 * another one. So the lower layer of one instant is sent first, and reports date a higher one a little later: a switch down comes
 * before the higher layer's frame of that instant, one up after the lower's.
 */
export class SourceFeed {
  /** Lowest first. */
  readonly tracks: readonly MediaTrack[];
  readonly #outlets = new Set<Outlet>();
  readonly #layers: readonly TrackFeed[];
  readonly #reports: Reports;
  readonly #alignment: Alignment | undefined;
  /** Called before the next key frame is sent. */
  #waiting: (() => void)[] = [];

  /** @param tracks lowest first, all of one codec */
  constructor(tracks: readonly MediaTrack[], options: FeedOptions) {
    this.tracks = tracks;
    this.#layers = tracks.map(({ codec }) => new TrackFeed(codec, this.#outlets, options));
    this.#reports = new Reports(this.#layers, this.#outlets);
    if (tracks.length > 1) {
      this.#alignment = new Alignment(tracks.length, (layer, packet, lateMs) => this.#send(layer, packet, lateMs));
    }
  }

  get ssrcs(): readonly number[] {
    return this.#layers.map(({ ssrc }) => ssrc);
  }

  /** @returns the undo */
  addOutlet(outlet: Outlet): () => void {
    this.#outlets.add(outlet);
    this.#reports.restart();
    return () => this.#outlets.delete(outlet);
  }

  /** Calls once, right before the packets of the next key frame: what is asked of a worker then it does before it gets them. */
  beforeKey(act: () => void): void {
    this.#waiting.push(act);
  }

  /** Sends a packet of one of the tracks; ignores others. */
  take(packet: Packet): void {
    if (this.#outlets.size === 0) return;
    const { id, codec } = packet.track;
    for (let layer = 0; layer < this.tracks.length; layer++) {
      const track = this.tracks[layer] as MediaTrack;
      if (track.id !== id || track.codec !== codec) continue;
      if (this.#alignment === undefined) this.#send(layer, packet, 0);
      else this.#alignment.take(layer, packet);
      return;
    }
  }

  close(): void {
    this.#alignment?.close();
    this.#waiting = [];
  }

  #send(layer: number, packet: Packet, lateMs: number): void {
    if (packet.key && this.#waiting.length > 0) for (const act of this.#waiting.splice(0)) act();
    const now = Date.now();
    this.#layers[layer]?.send(packet, now, lateMs + layer * LAYER_STEP_MS);
    this.#reports.tick(now);
  }
}
