import test from 'ava';
import { itemLength, planAt, planned, programAt, type LengthOf } from '../../../../src/channels/scheduled/plan.ts';
import type { Item, Program } from '../../../../src/channels/scheduled/spec.ts';
import { seeded } from '../../codecs/vectors.ts';

const DAY = 86_400_000;
const T0 = Date.UTC(2026, 2, 28, 22);
const LENGTHS: Readonly<Record<string, number>> = { a: 10_000, b: 4000, c: 60_000, empty: 0, broken: -5 };
const lengthOf: LengthOf = (url) => LENGTHS[url];

function item(url: string, duration = -1, start = 0): Item {
  return { url, start, duration, fallbackOnErr: true, forwardData: false };
}

function program(scheduled: number, items: Item[], repeat = false): Program {
  return { name: `at ${scheduled - T0}`, scheduled, repeat, items };
}

/** Url, index, begin and end of what is scheduled, times from T0 on. */
function brief(programs: Program[], at: number): unknown {
  const found = planAt(programs, T0 + at, lengthOf);
  return found && [found.item.url, found.index, found.begins - T0, found.ends && found.ends - T0];
}

function list(programs: Program[], from: number, to: number): unknown[] {
  return [...planned(programs, T0 + from, T0 + to, lengthOf)].map((entry) => [
    entry.program ? entry.item.url : 'gap',
    entry.begins - T0,
    entry.ends && entry.ends - T0,
  ]);
}

test('items follow each other from the time of their program on', (t) => {
  const programs = [program(T0, [item('a'), item('b'), item('c', 5000)])];
  t.deepEqual(brief(programs, 0), ['a', 0, 0, 10_000]);
  t.deepEqual(brief(programs, 9999), ['a', 0, 0, 10_000]);
  t.deepEqual(brief(programs, 10_000), ['b', 1, 10_000, 14_000]);
  t.deepEqual(brief(programs, 18_999), ['c', 2, 14_000, 19_000]);
  t.is(brief(programs, 19_000), undefined);
  t.is(brief(programs, -1), undefined);
});

test('a repeating program begins anew when its items have run out', (t) => {
  const programs = [program(T0, [item('a'), item('b')], true)];
  t.deepEqual(brief(programs, 14_000), ['a', 0, 14_000, 24_000]);
  t.deepEqual(brief(programs, 14_000 * 1_000_000 + 10_500), ['b', 1, 14_000_010_000, 14_000_014_000]);
});

test('the next program cuts what plays', (t) => {
  const programs = [program(T0, [item('c')]), program(T0 + 7000, [item('a')], true), program(T0 + 12_000, [item('b')])];
  t.deepEqual(brief(programs, 6999), ['c', 0, 0, 7000]);
  t.deepEqual(brief(programs, 7000), ['a', 0, 7000, 12_000]);
  t.deepEqual(brief(programs, 12_000), ['b', 0, 12_000, 16_000]);
  t.deepEqual(programAt(programs, T0 + 7000), { program: programs[1], ends: T0 + 12_000 });
  t.deepEqual(programAt(programs, T0 + DAY), { program: programs[2], ends: undefined });
  t.is(programAt(programs, T0 - 1), undefined);
});

test('an item of unknown length lasts until its program ends, unless it has a duration', (t) => {
  const live = item('stream://default/app/live');
  t.deepEqual(brief([program(T0, [live, item('a')], true)], DAY), [live.url, 0, 0, undefined]);
  t.deepEqual(brief([program(T0, [live]), program(T0 + DAY, [item('a')])], 5), [live.url, 0, 0, DAY]);
  const short = { ...live, duration: 3000 };
  t.deepEqual(brief([program(T0, [short, item('a')])], 3000), ['a', 1, 3000, 13_000]);
});

test('a file ends before the duration that is asked for, and begins at its start', (t) => {
  t.is(itemLength(item('a', 60_000), lengthOf), 10_000);
  t.is(itemLength(item('a', -1, 4000), lengthOf), 6000);
  t.is(itemLength(item('a', 5000, 4000), lengthOf), 5000);
  t.is(itemLength(item('a', 8000, 4000), lengthOf), 6000);
  t.is(
    itemLength(item('x'), () => 10_000.9),
    10_000,
  );
});

test('items of no length are passed over, and a program of them alone is a gap', (t) => {
  for (const nothing of [item('empty'), item('broken'), item('a', -1, 10_000), item('a', 5000, 99_000)]) {
    for (const repeat of [false, true]) {
      t.deepEqual(brief([program(T0, [nothing, item('b')], repeat)], 0), ['b', 1, 0, 4000]);
      t.is(brief([program(T0, [nothing], repeat)], 0), undefined);
      t.deepEqual(list([program(T0, [nothing], repeat)], 0, DAY), [['gap', 0, undefined]]);
    }
  }
});

test('a span lists what plays and the gaps between', (t) => {
  const programs = [
    program(T0, [item('a'), item('b')]),
    program(T0 + 15_000, [item('empty')]),
    program(T0 + 20_000, [item('b')], true),
    program(T0 + 26_000, [item('a')]),
  ];
  t.deepEqual(list(programs, -1000, 60_000), [
    ['gap', -1000, 0],
    ['a', 0, 10_000],
    ['b', 10_000, 14_000],
    ['gap', 14_000, 20_000],
    ['b', 20_000, 24_000],
    ['b', 24_000, 26_000],
    ['a', 26_000, 36_000],
    ['gap', 36_000, undefined],
  ]);
  t.deepEqual(list(programs, 5000, 12_000), [
    ['a', 0, 10_000],
    ['b', 10_000, 14_000],
  ]);
  t.deepEqual(list(programs, 14_500, 14_600), [['gap', 14_000, 20_000]]);
  t.deepEqual(list(programs, -9, -3), [['gap', -9, 0]]);
  t.deepEqual(list(programs, 5, 5), []);
  t.deepEqual(list([], 0, 5), [['gap', 0, undefined]]);
});

test('a day of forty items is one after the other without a hole', (t) => {
  const minutes = Array.from({ length: 40 }, (_, index) => 10 + ((index * 7) % 53));
  const length: LengthOf = (url) => minutes[Number(url)]! * 60_000;
  const items = minutes.map((_, index) => item(String(index)));
  const entries = [...planned([program(T0, items, true)], T0, T0 + DAY, length)];
  let at = T0;
  for (const [place, entry] of entries.entries()) {
    t.is(entry.program && entry.index, place % 40);
    t.is(entry.begins, at);
    at += minutes[place % 40]! * 60_000;
    t.is(entry.ends, at);
  }
  t.true(at >= T0 + DAY);
});

/** What plays in each second, by counting seconds. */
function simulate(programs: Program[], seconds: number): string[] {
  const played: string[] = [];
  let current: Program | undefined;
  let index = 0;
  let left = 0;
  const load = (): number => {
    const next = current?.items[index];
    return next === undefined ? 0 : itemLength(next, lengthOf) / 1000;
  };
  for (let second = 0; second < seconds; second++) {
    const begun = programs.find(({ scheduled }) => scheduled === T0 + second * 1000);
    if (begun !== undefined) {
      current = begun;
      index = 0;
      left = load();
    }
    const { items = [], repeat = false } = current ?? {};
    for (let tries = 0; left === 0 && tries <= 2 * items.length; tries++) {
      index++;
      if (index >= items.length && repeat) index = 0;
      left = load();
    }
    played.push(current !== undefined && left > 0 ? `${current.name} ${index}` : 'gap');
    left = Math.max(0, left - 1);
  }
  return played;
}

test('any schedule is what a count of seconds says', (t) => {
  const random = seeded(17);
  const below = (limit: number): number => Math.floor(random() * limit);
  const urls = [...Object.keys(LENGTHS), 'unknown', 'stream://v/a/s'];
  for (let round = 0; round < 400; round++) {
    const times = new Set(Array.from({ length: below(5) }, () => below(150)));
    const programs = [...times]
      .sort((one, other) => one - other)
      .map((second) => {
        const items = Array.from({ length: 1 + below(4) }, () =>
          item(urls[below(urls.length)]!, below(2) === 0 ? -1 : 1000 * (1 + below(20)), 1000 * below(12)),
        );
        return program(T0 + second * 1000, items, below(2) === 0);
      });
    const wanted = simulate(programs, 200);
    const found = wanted.map((_, second) => {
      const entry = planAt(programs, T0 + second * 1000, lengthOf);
      return entry === undefined ? 'gap' : `${entry.program.name} ${entry.index}`;
    });
    t.deepEqual(found, wanted, `round ${round}`);
    const from = below(200);
    const to = from + below(200 - from);
    const entries = [...planned(programs, T0 + from * 1000, T0 + to * 1000, lengthOf)];
    const listed = wanted.map((_, second) => {
      const at = T0 + second * 1000;
      const entry = entries.find(({ begins, ends = Infinity }) => begins <= at && at < ends);
      return second < from || second >= to ? '' : entry?.program ? `${entry.program.name} ${entry.index}` : 'gap';
    });
    t.deepEqual(
      listed,
      wanted.map((what, second) => (second < from || second >= to ? '' : what)),
      `round ${round} from ${from} to ${to}`,
    );
    for (const [place, entry] of entries.entries())
      if (place > 0) t.is(entry.begins, entries[place - 1]!.ends!, `round ${round}`);
  }
});
