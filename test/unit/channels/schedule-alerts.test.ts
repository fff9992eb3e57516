import test from 'ava';
import { pino } from 'pino';
import type { Alert } from '../../../src/core/registry.ts';
import { ScheduleAlerts } from '../../../src/channels/schedule-alerts.ts';
import type { GuideProblem } from '../../../src/channels/scheduled/guide-problems.ts';
import { channelRegistry } from '../../support/channels/channels.ts';

const SPEC = {
  stream: { bypassTranscoder: false, videoTrack: true, audioTrack: true, audioMap: [], errorToleranceDurationMs: 500 },
  programs: [],
};

function open() {
  const registry = channelRegistry();
  const raised: (readonly [string, string])[] = [];
  registry.on('alert', ({ messages, name }: Alert) =>
    raised.push(...messages.map(({ code }) => [code, name] as const)),
  );
  const state = {
    spec: SPEC as typeof SPEC,
    running: ['tv'],
    problems: [] as GuideProblem[],
    looks: 0,
  };
  const alerts = new ScheduleAlerts({
    registry,
    tasks: {
      reports: ({ app }) => new Map(app === 'app' ? state.running.map((id) => [id, null]) : []),
      definitions: { get: () => ({ spec: state.spec, persistent: true, stored: false }) } as never,
    },
    guides: {
      here: async () => {
        state.looks += 1;
        return { entries: [], isCut: false, unmeasured: 0, problems: state.problems };
      },
    },
    log: pino({ level: 'silent' }),
  });
  return { alerts, state, raised };
}

const gap: GuideProblem = { type: 'gap', begins: 1000, ends: 5000 };
const overlap: GuideProblem = { type: 'overlap', begins: 7000, ends: 9000, program: 'news' };
const unreadable: GuideProblem = { type: 'unreadable', begins: 8000, program: 'news', url: 'file://a.mp4' };

test('each problem of a schedule is reported once', async (t) => {
  const { alerts, state, raised } = open();
  state.problems = [gap, overlap, unreadable];
  await alerts.look();
  t.deepEqual(raised, [
    ['SCHEDULE_GAP', 'tv'],
    ['SCHEDULE_OVERLAP', 'tv'],
    ['SCHEDULE_FILE_UNREADABLE', 'tv'],
  ]);
  await alerts.look();
  t.is(state.looks, 1, 'a definition that stays is not looked at again at once');
  // time has gone by: the gap has begun, and the file comes again
  state.spec = { ...SPEC };
  state.problems = [{ ...gap, begins: 3000 }, overlap, { ...unreadable, begins: 9500 }];
  await alerts.look();
  t.is(state.looks, 2);
  t.is(raised.length, 3);
});

test('a problem of a schedule that was mended and returns is reported again, and another problem by itself', async (t) => {
  const { alerts, state, raised } = open();
  const look = async (...problems: GuideProblem[]) => {
    state.spec = { ...SPEC };
    state.problems = problems;
    await alerts.look();
    return raised.splice(0).length;
  };
  t.is(await look(unreadable), 1);
  t.is(await look(unreadable, { ...unreadable, url: 'file://b.mp4' }, { ...gap, ends: 6000 }), 2);
  t.is(await look(), 0);
  t.is(await look(unreadable), 1);
});

test('only channels that run here are looked at', async (t) => {
  const { alerts, state, raised } = open();
  state.problems = [gap];
  state.running = [];
  await alerts.look();
  t.is(state.looks, 0);
  state.running = ['tv'];
  await alerts.look();
  state.running = [];
  await alerts.look();
  state.running = ['tv'];
  await alerts.look();
  t.is(raised.length, 2, 'it has been on another node');
});
