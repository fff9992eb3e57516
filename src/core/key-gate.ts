import { LeadingPictures } from './leading-pictures.ts';
import type { Packet } from './packet.ts';
import type { Track } from './track.ts';

/**
 * Passes the packets that can be decoded after a loss: each video track of a stream goes on at its own next key frame, without
 * the leading pictures that cannot be decoded. A track is known by its id.
 */
export class KeyGate {
  readonly #lost: Set<number>;
  #silent = false;
  /** By id of a track that has begun with an open key frame. */
  readonly #leading = new Map<number, LeadingPictures>();

  /** @param lost ids of the video tracks that wait for a key frame */
  constructor(lost: Iterable<number> = []) {
    this.#lost = new Set(lost);
  }

  /** False as long as every packet passes: nothing need be asked then. */
  get waits(): boolean {
    return this.#silent || this.#lost.size > 0 || this.#leading.size > 0;
  }

  /** Whether a packet can be delivered. To be asked once for each, in order. */
  passes(packet: Pick<Packet, 'track' | 'key' | 'pts'>): boolean {
    const { track, key } = packet;
    if (track.type !== 'video') return !this.#silent;
    if (key) {
      const begins = this.#lost.delete(track.id) || this.#silent;
      this.#silent = false;
      if (begins && key === 'open') this.#begin(packet);
      else this.#leading.delete(track.id);
      return true;
    }
    if (this.#silent) this.#lost.add(track.id);
    if (this.#lost.has(track.id)) return false;
    const leading = this.#leading.get(track.id);
    if (leading === undefined) return true;
    if (leading.drops(packet)) return false;
    this.#leading.delete(track.id);
    return true;
  }

  /** A packet is dropped. */
  lose({ track }: Pick<Packet, 'track'>): void {
    if (track.type === 'video') this.#lost.add(track.id);
  }

  /** Holds back all tracks, audio too, until a video key frame. */
  silence(): void {
    this.#silent = true;
  }

  /**
   * Other tracks are delivered than before: video that is new, or of another codec, waits for a key frame. Without video
   * nothing waits.
   * @returns whether there is video
   */
  retrack(tracks: readonly Track[], before: readonly Track[]): boolean {
    const videos = tracks.filter(({ type }) => type === 'video');
    if (videos.length === 0) {
      this.#silent = false;
      this.#lost.clear();
      this.#leading.clear();
    }
    for (const track of videos)
      if (!before.some(({ id, codec }) => id === track.id && codec === track.codec)) this.lose({ track });
    return videos.length > 0;
  }

  #begin(packet: Pick<Packet, 'track' | 'key' | 'pts'>): void {
    const leading = new LeadingPictures();
    leading.begin(packet);
    this.#leading.set(packet.track.id, leading);
  }

  /**
   * Drops the first `start` packets, and behind them what cannot be decoded any more.
   * @returns what is left, and the gate for what follows it; this gate stays as it is
   */
  cut(packets: readonly Packet[], start: number): { kept: Packet[]; gate: KeyGate } {
    const gate = new KeyGate(this.#lost);
    const kept: Packet[] = [];
    for (const [i, packet] of packets.entries()) {
      if (i < start) gate.lose(packet);
      else if (gate.passes(packet)) kept.push(packet);
    }
    return { kept, gate };
  }
}

/** Where the last key frame of each video track is in a list of packets, first ones first. */
export function lastKeys(packets: readonly Packet[]): number[] {
  const last = new Map<number, number>();
  for (const [i, { track, key }] of packets.entries()) if (key && track.type === 'video') last.set(track.id, i);
  return [...last.values()].sort((a, b) => a - b);
}
