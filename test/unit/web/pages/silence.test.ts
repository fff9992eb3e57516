import test from 'ava';

interface Silence {
  heard(received: number, now: number): boolean;
  explained(now: number): void;
}
const { SilenceWatch } = (await import(new URL('../../../../src/web/pages/silence.js', import.meta.url).href)) as {
  SilenceWatch: new (now: number) => Silence;
};

/** When the watch asks whether the server is there, which says yes each time. @param counts what had come at a time, in ms */
function asked(counts: (now: number) => number, { everyMs = 250, untilMs = 60_000 } = {}): number[] {
  const silence = new SilenceWatch(0);
  const times: number[] = [];
  for (let now = 0; now <= untilMs; now += everyMs) {
    if (!silence.heard(counts(now), now)) continue;
    times.push(now);
    silence.explained(now);
  }
  return times;
}

const FLOWING = (now: number): number => Math.floor(now / 20);

test('flowing media causes no request', (t) => {
  t.deepEqual(asked(FLOWING), []);
});

test('a silence is noticed after a second, again after twice as long each time, and at least every eight seconds', (t) => {
  t.deepEqual(
    asked((now) => FLOWING(Math.min(now, 10_000)), { untilMs: 42_000 }),
    [11_000, 13_000, 17_000, 25_000, 33_000, 41_000],
  );
});

test('a stream without any media from the beginning is silent, too', (t) => {
  t.deepEqual(
    asked(() => 0, { untilMs: 4000 }),
    [1000, 3000],
  );
});

test('a stream with a frame now and then is asked about once', (t) => {
  t.is(asked((now) => Math.floor(now / 1400)).length, 1);
});

test('the next silence after half a minute without one is noticed after a second again', (t) => {
  const pauses = (now: number): number => (now > 5000 && now < 9000 ? 5000 : now > 50_000 ? 50_000 : now);
  t.deepEqual(asked(pauses, { untilMs: 52_000 }), [6000, 8000, 51_000]);
});

test('a page whose timers are throttled does not take what flows for silence', (t) => {
  t.deepEqual(asked(FLOWING, { everyMs: 1000 }), []);
  t.deepEqual(asked(FLOWING, { everyMs: 60_000, untilMs: 600_000 }), []);
});
