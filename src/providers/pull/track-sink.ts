import { placed, type LocalClock } from '../intake/local-clock.ts';
import type { TrackSink } from '../intake/track-writer.ts';
import type { SourceSink } from './source.ts';

/** Receiver of the tracks and packets of a source without playlists of its own, whose times go on across connections. */
export function trackSink(sink: SourceSink, clock: LocalClock): TrackSink {
  clock.restart();
  return {
    setTracks: (tracks) => sink.tracks(tracks, []),
    write: (packet) => sink.packet(placed(packet, clock)),
  };
}
