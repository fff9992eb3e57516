import { cuePacket, CueStore } from './cue-store.ts';
import type { Packet } from './packet.ts';
import { MILLISECONDS, rescale } from './timebase.ts';
import type { SubtitleTrack } from './track.ts';

/** Cues stay for so long after their end: readers may be behind. */
const BEHIND_MS = 10_000;
/** Cues that begin so long after a time are of a timeline that the source has left. */
const AHEAD_MS = 60_000;

/** The cues that a stream shows, for readers that begin while they are shown. */
export class ShownCues {
  /** By track id. */
  readonly #tracks = new Map<number, { readonly track: SubtitleTrack; readonly cues: CueStore }>();

  /** Adds the packet of a subtitle track. */
  add(packet: Packet, track: SubtitleTrack): void {
    const known = this.#tracks.get(track.id);
    const cues = known?.track === track ? known.cues : new CueStore();
    if (known?.track !== track) this.#tracks.set(track.id, { track, cues });
    cues.over(rescale(packet.pts, track.timebase, MILLISECONDS) - BEHIND_MS);
    cues.add(packet);
  }

  /** Packets of the cues of a track that are not over at a time, in milliseconds of media time; in the order in which they came. */
  at(trackId: number, time: number): Packet[] {
    const shown = this.#tracks.get(trackId);
    return (shown?.cues.between(time, time + AHEAD_MS) ?? []).map((cue) =>
      cuePacket(shown?.track as SubtitleTrack, cue),
    );
  }
}
