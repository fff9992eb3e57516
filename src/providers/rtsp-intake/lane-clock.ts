import type { Timebase } from '../../core/timebase.ts';
import { RTP_CLOCK } from '../../protocols/rtp/receive/clock.ts';
import type { MediaClock, TrackClock } from '../intake/track-writer.ts';
import type { LocalClock } from '../intake/local-clock.ts';

/** Clock of one connection, on the clock that continues across connections. */
export function connectionClock(clock: LocalClock): MediaClock {
  clock.restart();
  let tracks = 0;
  return {
    // `LocalClock` begins with its first time
    start: () => {},
    track: (timebase) => laneClock(clock, tracks++, timebase),
  };
}

function laneClock(clock: LocalClock, id: number, begin: Timebase): TrackClock {
  let timebase = begin;
  const next = (source: number, samples: number): number =>
    clock.next(id, source, RTP_CLOCK.timebase, timebase, samples, performance.now());
  return {
    next: (source) => next(source, 0),
    nextFrame: next,
    setTimebase: (other) => {
      timebase = other;
    },
  };
}
