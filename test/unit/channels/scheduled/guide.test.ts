import test from 'ava';
import { guideOf, readGuideSpan, type GuideEntry } from '../../../../src/channels/scheduled/guide.ts';
import { findGuideProblems } from '../../../../src/channels/scheduled/guide-problems.ts';
import { planned } from '../../../../src/channels/scheduled/plan.ts';
import type { Item, Program, ScheduleSpec } from '../../../../src/channels/scheduled/spec.ts';
import { seeded } from '../../codecs/vectors.ts';

const DAY = 86_400_000;
const MINUTE = 60_000;
const T0 = Date.UTC(2026, 2, 28, 22);
const LENGTHS: Readonly<Record<string, number>> = { 'file://a': 10 * MINUTE, 'file://b': 4 * MINUTE, 'file://0': 0 };
const lengthOf = (url: string): number | undefined => LENGTHS[url];
const isReadable = (url: string): boolean => url.startsWith('stream:') || url in LENGTHS;
const STREAM = {
  bypassTranscoder: false,
  videoTrack: true,
  audioTrack: true,
  audioMap: [],
  errorToleranceDurationMs: 500,
};

function item(url: string, duration = -1, start = 0): Item {
  return { url, start, duration, fallbackOnErr: true, forwardData: false };
}

function program(name: string, scheduled: number, items: Item[], repeat = false): Program {
  return { name, scheduled, repeat, items };
}

function guide(programs: Program[], from: number, to: number, changes: Partial<ScheduleSpec> = {}) {
  const spec = { stream: STREAM, programs, ...changes };
  return guideOf(spec, { from, to, now: from, lengthOf, isReadable });
}

test('a guide has what plays with exact times', (t) => {
  const programs = [
    program('news', T0, [item('file://a', -1, MINUTE), item('stream://v/a/s', 2 * MINUTE)]),
    program('film', T0 + 20 * MINUTE, [item('file://none', 5000), item('file://b')], true),
  ];
  const { entries, isCut } = guide(programs, T0 - MINUTE, T0 + 22 * MINUTE);
  t.false(isCut);
  const news = { name: 'news', scheduled: T0, repeat: false };
  const film = { name: 'film', scheduled: T0 + 20 * MINUTE, repeat: true };
  const wanted: GuideEntry[] = [
    { type: 'offair', begins: T0 - MINUTE, ends: T0 },
    {
      type: 'item',
      begins: T0,
      ends: T0 + 9 * MINUTE,
      program: news,
      item: { url: 'file://a', index: 0, position: MINUTE, unreadable: false },
    },
    {
      type: 'item',
      begins: T0 + 9 * MINUTE,
      ends: T0 + 11 * MINUTE,
      program: news,
      item: { url: 'stream://v/a/s', index: 1, position: 0, unreadable: false },
    },
    { type: 'offair', begins: T0 + 11 * MINUTE, ends: T0 + 20 * MINUTE },
    {
      type: 'item',
      begins: T0 + 20 * MINUTE,
      ends: T0 + 20 * MINUTE + 5000,
      program: film,
      item: { url: 'file://none', index: 0, position: 0, unreadable: true },
    },
    {
      type: 'item',
      begins: T0 + 20 * MINUTE + 5000,
      ends: T0 + 24 * MINUTE + 5000,
      program: film,
      item: { url: 'file://b', index: 1, position: 0, unreadable: false },
    },
  ];
  t.deepEqual(entries, wanted);
  const fallbackProgram = { items: [item('file://b')] };
  const types = guide(programs, T0 - MINUTE, T0, { fallbackProgram }).entries.map(({ type }) => type);
  t.deepEqual(types, ['fallback']);
});

test('a guide has a bounded number of entries', (t) => {
  const many = guide([program('loop', T0, [item('file://a', 1000)], true)], T0, T0 + DAY);
  t.is(many.entries.length, 10_000);
  t.true(many.isCut);
  t.is(many.entries.at(-1)?.ends, T0 + 10_000_000);
  const exact = guide([program('loop', T0, [item('file://a', 1000)], true)], T0, T0 + 10_000_000);
  t.is(exact.entries.length, 10_000);
  t.false(exact.isCut);
});

test('gaps, overlaps and unreadable files of the next day are reported', (t) => {
  const programs = [
    program('one', T0, [item('file://a')]),
    program('two', T0 + 5 * MINUTE, [item('file://b')]),
    program('empty', T0 + 10 * MINUTE, [item('file://0')]),
    program('three', T0 + 15 * MINUTE, [item('file://b'), item('file://none', 5000), item('stream://v/a/s')], true),
    program('four', T0 + DAY - MINUTE, [item('file://none')]),
    program('five', T0 + DAY + MINUTE, [item('file://gone')]),
  ];
  t.deepEqual(guide(programs, T0, T0 + MINUTE).problems, [
    { type: 'overlap', begins: T0 + 5 * MINUTE, ends: T0 + 10 * MINUTE, program: 'one' },
    { type: 'gap', begins: T0 + 9 * MINUTE, ends: T0 + 15 * MINUTE },
    {
      type: 'unreadable',
      begins: T0 + 19 * MINUTE,
      ends: T0 + 19 * MINUTE + 5000,
      program: 'three',
      url: 'file://none',
    },
    { type: 'unreadable', begins: T0 + DAY - MINUTE, ends: T0 + DAY + MINUTE, program: 'four', url: 'file://none' },
  ]);
  t.deepEqual(guide([], T0, T0 + MINUTE).problems, [{ type: 'gap', begins: T0, ends: undefined }]);
  t.deepEqual(guide([program('one', T0 + MINUTE, [item('file://a')], true)], T0, T0 + 1).problems, [
    { type: 'gap', begins: T0, ends: T0 + MINUTE },
  ]);
  t.deepEqual(guide([program('one', T0 - DAY, [item('stream://v/a/s')])], T0, T0 + 1).problems, []);
});

test('reported gaps of a schedule are those that are planned', (t) => {
  const random = seeded(3);
  const below = (limit: number): number => Math.floor(random() * limit);
  const urls = [...Object.keys(LENGTHS), 'file://none', 'stream://v/a/s'];
  for (let round = 0; round < 500; round++) {
    const times = new Set(Array.from({ length: below(6) }, () => below(90)));
    const programs = [...times]
      .sort((one, other) => one - other)
      .map((minute) => {
        const items = Array.from({ length: 1 + below(3) }, () =>
          item(urls[below(urls.length)]!, below(3) === 0 ? -1 : MINUTE * (1 + below(9)), MINUTE * below(12)),
        );
        return program(`at ${minute}`, T0 + minute * MINUTE, items, below(2) === 0);
      });
    const [from, to] = [T0 + below(60) * MINUTE, T0 + (60 + below(60)) * MINUTE];
    const problems = findGuideProblems(programs, { from, to, lengthOf, isReadable });
    const entries = [...planned(programs, from, to, lengthOf)];
    const gaps = entries.flatMap(({ program: of, begins, ends }) =>
      of === undefined ? [{ type: 'gap', begins: Math.max(begins, from), ends }] : [],
    );
    t.deepEqual(
      problems.filter(({ type }) => type === 'gap'),
      gaps as typeof problems,
      `round ${round}`,
    );
    const missing = entries.flatMap((entry) => (entry.program && !isReadable(entry.item.url) ? [entry.begins] : []));
    const told = problems.filter(({ type }) => type === 'unreadable').map(({ begins }) => begins);
    t.true(
      told.every((begins) => missing.includes(begins)),
      `round ${round}`,
    );
    t.is(told.length === 0, missing.length === 0, `round ${round}`);
  }
});

test('a day of very short items costs little', (t) => {
  const short = program(
    'short',
    T0,
    Array.from({ length: 4000 }, () => item('file://short')),
    true,
  );
  const options = { lengthOf: () => 1, isReadable: () => false };
  const problems = findGuideProblems([short], { from: T0, to: T0 + DAY, ...options });
  t.is(problems.length, 1000);
});

test('the span of a guide is a day from now on unless it is given', (t) => {
  t.deepEqual(readGuideSpan(undefined, undefined, T0), { ok: true, from: T0, to: T0 + DAY });
  t.deepEqual(readGuideSpan('2026-03-28T23:00:00+01:00', '2026-03-28T22:30:00', 5), {
    ok: true,
    from: T0,
    to: T0 + 30 * MINUTE,
  });
  t.like(readGuideSpan('2026-03-28T22:00:00Z', '2026-04-28T22:00:00Z', 5), { ok: true });
  for (const [from, to, problem] of [
    ['today', undefined, 'from: "today" is not a date and time'],
    [undefined, '2026', 'to: "2026" is not a date and time'],
    ['2026-03-28T22:00:00Z', '2026-03-28T22:00:00Z', 'to: is not after from'],
    ['2026-03-28T22:00:00Z', '2026-04-28T22:00:01Z', 'to: is more than 31 days after from'],
  ] as const)
    t.deepEqual(readGuideSpan(from, to, T0), { ok: false, problem });
});
