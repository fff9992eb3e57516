import test from 'ava';
import { problemText } from '../../../../src/config/names.ts';
import type { Checked } from '../../../../src/channels/sources/definition-form.ts';
import { checkSchedule, checkSchedulePatch } from '../../../../src/channels/scheduled/check.ts';
import { readScheduleSpec } from '../../../../src/channels/scheduled/spec.ts';

const NOW = Date.UTC(2026, 2, 29, 12);
const FILE = { url: 'file://sample.mp4' };

function channel(changes: object = {}): object {
  return {
    stream: { name: 'tv1' },
    programs: [{ name: '1', scheduled: '2026-03-29T12:00:00Z', items: [FILE] }],
    ...changes,
  };
}

function item(changes: object): object {
  return channel({ programs: [{ scheduled: '2026-03-29T12:00:00Z', items: [FILE, { ...FILE, ...changes }] }] });
}

function problems(checked: Checked<unknown>): string[] {
  return checked.ok ? [] : checked.problems.map(problemText);
}

test('elements of a schedule that are not given have their defaults', (t) => {
  const checked = checkSchedule(channel({ fallbackProgram: { items: [FILE] } }), NOW);
  const plain = { url: 'file://sample.mp4', start: 0, duration: -1, fallbackOnErr: true, forwardData: false };
  t.deepEqual(checked, {
    ok: true,
    warnings: [],
    value: {
      name: 'tv1',
      spec: {
        stream: {
          bypassTranscoder: false,
          videoTrack: true,
          audioTrack: true,
          audioMap: [],
          errorToleranceDurationMs: 500,
        },
        fallbackProgram: { items: [plain] },
        programs: [{ name: '1', scheduled: NOW, repeat: false, items: [plain] }],
      },
    },
  });
  t.true(checked.ok && readScheduleSpec(checked.value.spec) !== undefined);
});

test('a program without repeat does not repeat, whatever the one before it says', (t) => {
  const program = { items: [FILE] };
  const checked = checkSchedule(
    channel({
      programs: [
        { ...program, scheduled: '2026-03-30T00:00:00Z', repeat: true },
        { ...program, scheduled: '2026-03-31T00:00:00Z' },
      ],
    }),
    NOW,
  );
  t.deepEqual(checked.ok && checked.value.spec.programs.map(({ repeat }) => repeat), [true, false]);
});

test('durations below a second are raised to one', (t) => {
  for (const [given, kept] of [
    [-1, -1],
    [0, 1000],
    [999, 1000],
    [1000, 1000],
    [1001, 1001],
  ] as const) {
    const checked = checkSchedule(item({ duration: given }), NOW);
    t.is(checked.ok && checked.value.spec.programs[0]!.items[1]!.duration, kept);
  }
});

test('programs are sorted, and those that are over are dropped', (t) => {
  const at = (scheduled: string): object => ({ scheduled, items: [FILE] });
  const times = (scheduled: string[]): unknown => {
    const checked = checkSchedule(channel({ programs: scheduled.map(at) }), NOW);
    return checked.ok && checked.value.spec.programs.map((program) => new Date(program.scheduled).toISOString());
  };
  t.deepEqual(
    times([
      '2026-03-29T23:00:00+09:00',
      '2026-03-29T10:00:00',
      '2026-03-29T11:59:59',
      '2026-03-28T12:00:00Z',
      '2026-03-30T00:00:00+02',
    ]),
    ['2026-03-29T11:59:59.000Z', '2026-03-29T14:00:00.000Z', '2026-03-29T22:00:00.000Z'],
  );
  t.deepEqual(times(['2027-01-01T00:00:00Z']), ['2027-01-01T00:00:00.000Z']);
  t.deepEqual(times([]), []);
});

test('each wrong value of a schedule is named by its element', (t) => {
  const cases: readonly (readonly [unknown, string])[] = [
    [[], 'a list is not an object'],
    [channel({ stream: undefined }), 'stream: undefined is not an object'],
    [{}, 'stream: is missing'],
    [channel({ stream: {} }), 'stream.name: is missing'],
    [
      channel({ stream: { name: 'a/b' } }),
      'stream.name: "a/b" is not a name of a stream (without / : ? #, of at most 255 bytes)',
    ],
    [
      channel({ stream: { name: 'a', videoTrack: false, audioTrack: false } }),
      'stream: at least one of videoTrack and audioTrack must be true',
    ],
    [channel({ stream: { name: 'a', audioMap: [{ language: 'en' }] } }), 'stream.audioMap[0].name: is missing'],
    [item({ duration: -2 }), 'programs[0].items[1].duration: -2 is not an integer (-1..1000000000000)'],
    [item({ duration: 1.5 }), 'programs[0].items[1].duration: 1.5 is not an integer (-1..1000000000000)'],
    [item({ start: -1 }), 'programs[0].items[1].start: -1 is not an integer (0..1000000000000)'],
    [item({ fallbackOnErr: 'yes' }), 'programs[0].items[1].fallbackOnErr: "yes" is not true or false'],
    [channel({ programs: [{ scheduled: '2026-01-01T00:00:00Z' }] }), 'programs[0].items: is missing'],
    [channel({ programs: [{ scheduled: '2026-01-01T00:00:00Z', items: [] }] }), 'programs[0].items: is missing'],
    [channel({ programs: [{ items: [FILE] }] }), 'programs[0].scheduled: is missing'],
    [
      channel({ programs: [{ scheduled: '2026-02-30T00:00:00Z', items: [FILE] }] }),
      'programs[0].scheduled: "2026-02-30T00:00:00Z" is not a date and time such as 2026-03-28T20:15:00.000+01:00',
    ],
    [
      channel({
        programs: ['2027-01-01T01:00:00+01:00', '2027-01-02T00:00:00', '2027-01-01T00:00:00'].map((scheduled) => ({
          scheduled,
          items: [FILE],
        })),
      }),
      'programs[2].scheduled: programs[0] begins at the same time',
    ],
  ];
  for (const [json, wanted] of cases) t.deepEqual(problems(checkSchedule(json, NOW)), [wanted]);
});

test('items are files below the root of media, or streams', (t) => {
  for (const url of [
    'file://a.mp4',
    'file:///sub/a%20b.mp4',
    'file://100%25.mp4',
    'FILE://a..b/...mp4',
    'stream://default/app/tv',
    'stream://v*/app/tv',
  ])
    t.deepEqual(problems(checkSchedule(item({ url }), NOW)), [], url);
  for (const url of [
    '',
    'a.mp4',
    'file://',
    'file:///',
    'file://../a.mp4',
    'file://a/../../b.mp4',
    'file://a/%2e%2E/b.mp4',
    'file://a/..%2Fb.mp4',
    'file://a%00.mp4',
    'file://100%.mp4',
    'file:a.mp4',
    'stream://default/app',
    'stream://default/app/tv/more',
    'stream:///app/tv',
    'http://host/a.mp4',
    'concat:a|b',
  ])
    t.deepEqual(problems(checkSchedule(item({ url }), NOW)), [
      `programs[0].items[1].url: ${JSON.stringify(url)} is not file:// and a path below MediaRootDir, or stream://vhost/app/stream`,
    ]);
});

test('a patch replaces what it names', (t) => {
  const before = checkSchedule(channel({ fallbackProgram: { items: [FILE] } }), NOW);
  if (!before.ok) return t.fail();
  const { spec } = before.value;
  const only = { name: 'next', scheduled: '2026-04-01T00:00:00Z', items: [{ url: 'stream://v/a/s', duration: 5 }] };
  const programs = checkSchedulePatch(spec, { programs: [only] }, NOW);
  t.true(programs.ok);
  if (!programs.ok) return;
  t.deepEqual(programs.value.stream, spec.stream);
  t.deepEqual(programs.value.fallbackProgram, spec.fallbackProgram);
  t.deepEqual(
    programs.value.programs.map(({ name, items }) => [name, items[0]!.duration]),
    [['next', 1000]],
  );
  const none = checkSchedulePatch(spec, { fallbackProgram: { items: [] } }, NOW);
  t.deepEqual(none.ok && none.value, { stream: spec.stream, programs: spec.programs });
  const all = checkSchedulePatch(spec, {}, NOW);
  t.deepEqual(all.ok && all.value, spec);
  t.deepEqual(problems(checkSchedulePatch(spec, { programs: [{}] }, NOW)), [
    'programs[0].scheduled: is missing',
    'programs[0].items: is missing',
  ]);
  t.deepEqual(problems(checkSchedulePatch(spec, { programs: [only, only] }, NOW)), [
    'programs[1].scheduled: programs[0] begins at the same time',
  ]);
});
