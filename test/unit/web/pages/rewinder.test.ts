import test from 'ava';

interface Stretch {
  readonly start: number;
}
interface Rewindable {
  readonly stretches: readonly Stretch[];
  readonly begin: number;
  readonly live: number;
}
interface Rewinder {
  readonly rewindable: Rewindable | undefined;
  seek(time: number): void;
}
const { Rewinder } = (await import(new URL('../../../../src/web/pages/rewinder.js', import.meta.url).href)) as {
  Rewinder: new (hls: FakeHls, video: FakeVideo, rewinds: () => boolean) => Rewinder;
};

const SECONDS = 2;
const COUNT = 30;
const DATE = Date.UTC(2026, 0, 1);

/** A playlist as hls.js has it: segments whose media times it calculates. */
const playlist = (start: number, { startSN = 0, live = true } = {}) => ({
  fragments: Array.from({ length: COUNT }, (_, index) => ({
    start: start + index * SECONDS,
    duration: SECONDS,
    programDateTime: DATE + index * SECONDS * 1000,
  })),
  startSN,
  live,
  targetduration: SECONDS,
});

class FakeHls {
  static readonly Events = { LEVEL_UPDATED: 'hlsLevelUpdated' };
  readonly config = {};
  latestLevelDetails;
  #updated = () => {};

  constructor(details: ReturnType<typeof playlist>) {
    this.latestLevelDetails = details;
  }

  get liveSyncPosition() {
    const { fragments } = this.latestLevelDetails;
    return (fragments.at(-1)?.start ?? 0) + SECONDS;
  }

  on(_event: string, listener: () => void) {
    this.#updated = listener;
  }

  load(details: ReturnType<typeof playlist>) {
    this.latestLevelDetails = details;
    this.#updated();
  }
}

/** Seeks until it is told otherwise, to whole microseconds as browsers do. */
class FakeVideo extends EventTarget {
  readonly readyState = 1;
  readonly playbackRate = 1;
  seeking = false;
  #time = COUNT * SECONDS;

  get currentTime() {
    return this.#time;
  }

  set currentTime(time: number) {
    this.#time = Math.floor(time * 1e6) / 1e6;
    this.seeking = true;
    this.dispatchEvent(new Event('seeking'));
  }
}

function rewinderOf(details: ReturnType<typeof playlist>) {
  const [hls, video] = [new FakeHls(details), new FakeVideo()];
  const rewinder = new Rewinder(hls, video, () => true);
  video.dispatchEvent(new Event('playing'));
  return { hls, video, rewinder };
}

test('the beginning is inside the oldest segment of a live stream', (t) => {
  // whose start is between two microseconds
  const start = 0.0000014;
  const { video, rewinder } = rewinderOf(playlist(start));
  rewinder.seek(rewinder.rewindable?.begin ?? NaN);
  t.true(video.currentTime > start && video.currentTime < start + SECONDS);
});

test('the beginning is behind the segment that leaves next, and the very beginning of what has ended', (t) => {
  t.is(rewinderOf(playlist(100, { startSN: 7 })).rewinder.rewindable?.begin, 100 + SECONDS);
  t.is(rewinderOf(playlist(100, { live: false })).rewinder.rewindable?.begin, 100);
});

test('a seek that the oldest segment has left behind goes to the new beginning', (t) => {
  const { hls, video, rewinder } = rewinderOf(playlist(10));
  rewinder.seek(0);
  const first = video.currentTime;
  hls.load(playlist(first - 0.01));
  t.is(video.currentTime, first, 'it is in the playlist still');
  hls.load(playlist(first + 0.01));
  const { begin = NaN } = rewinder.rewindable ?? {};
  t.true(Math.abs(video.currentTime - begin) < 0.001, `${video.currentTime}, not ${begin}`);
  // what is shown already is no concern
  video.seeking = false;
  const shown = video.currentTime;
  hls.load(playlist(shown + 5, { startSN: 3 }));
  t.is(video.currentTime, shown);
});
