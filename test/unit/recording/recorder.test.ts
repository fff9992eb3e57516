import test from 'ava';
import { pino } from 'pino';
import { Registry } from '../../../src/core/registry.ts';
import { FaultLog } from '../../../src/log/log.ts';
import { asJson } from '../../../src/lib/as-json.ts';
import { TaskEnd, type StreamTask } from '../../../src/tasks/kind.ts';
import { DiskCalls } from '../../../src/core/disk-calls.ts';
import { Disks } from '../../../src/core/disks.ts';
import type { Journal } from '../../../src/recording/journal.ts';
import { RecordKind } from '../../../src/recording/kind.ts';
import { Recorder } from '../../../src/recording/recorder.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { videoPackets, videoTrack } from '../../support/media/packets.ts';
import { recordSpec } from '../../support/recording/recordings.ts';
import { stayAwake } from '../../support/time/stay-awake.ts';

/** A recorder of a stream whose disk does not answer. */
function scene(skipsStandby = false) {
  const log = pino({ level: 'silent' });
  const registry = new Registry();
  addVhost(registry);
  const track = videoTrack();
  const output = goLive(registry, 'app', 'stream', [track]);
  const disk = new Disks(new DiskCalls({ hangsMs: 20 })).open('/');
  const hanging = new Promise<never>(() => undefined);
  for (let i = 0; i < 2; i++) void disk.take(() => hanging);
  const stop = new AbortController();
  let report = (): unknown => undefined;
  const task = {
    name: { kind: 'record', vhost: 'default', app: 'app', id: 'r' },
    output,
    progress: undefined,
    signal: stop.signal,
    keep: () => undefined,
    show: (shown: () => unknown) => (report = shown),
  };
  const recorder = new Recorder({
    task: task as unknown as StreamTask,
    spec: recordSpec({ interval: 1000 }),
    paths: { root: '/nowhere', file: 'a.mp4', info: 'a.xml' },
    start: undefined,
    skipsStandby,
    disk,
    journal: {} as Journal,
    faults: new FaultLog(log),
    log,
  });
  const write = (from: number, to: number): void => {
    for (const packet of videoPackets(track, { from, to })) output.write(packet);
  };
  return { recorder, output, track, stop, write, report: () => report() };
}

test('files that a disk which hangs does not complete are not begun without end', (t) => {
  const { recorder, write, report } = scene();
  void recorder.run();
  write(0, 20);
  t.like(report(), { state: 'recording', sequence: 19 });
  write(20, 50);
  t.like(report(), { state: 'error', reason: 'the disk is too slow', sequence: 32 });
});

test('a recording uses its stream, and is counted, until it ends or fails', async (t) => {
  const { recorder, output, stop } = scene();
  const over = recorder.run();
  t.true(output.watched);
  t.is(output.counters.publishers.file, 1);
  t.is(output.sessions.size, 0);
  stop.abort(new TaskEnd('removed', 'stopped'));
  await over;
  t.false(output.watched);
  t.is(output.counters.publishers.file, 0);
  const failing = scene();
  void failing.recorder.run();
  failing.write(0, 50);
  t.false(failing.output.watched);
  t.is(failing.output.counters.publishers.file, 0);
});

test('a recording whose disk hangs ends without it', async (t) => {
  stayAwake(t);
  const { recorder, stop, write, report } = scene();
  const over = recorder.run();
  write(0, 5);
  stop.abort(new TaskEnd('handedOver', 'the node is stopping'));
  await over;
  t.like(report(), { sequence: 4 });
});

test('an application without a FILE publisher records nothing, and the log says so once', async (t) => {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const registry = new Registry();
  addVhost(registry);
  const stop = new AbortController();
  const task: Partial<StreamTask> = {
    name: { kind: 'record', vhost: 'default', app: 'app', id: 'r' },
    spec: asJson(recordSpec()),
    application: registry.vhost('default').application('app'),
    output: goLive(registry, 'app', 'stream', [videoTrack()]),
    progress: undefined,
    signal: stop.signal,
  };
  const over = new RecordKind({ folder: '/nowhere', journal: {} as Journal, start: () => undefined, log }).run(
    task as StreamTask,
  );
  t.is(lines.length, 1);
  t.regex(lines.join(), /the application has no FILE publisher/);
  stop.abort(new TaskEnd('streamGone', 'gone'));
  await t.notThrowsAsync(over);
});

test('a recording that leaves out what is shown while the publisher is away goes on in another file', (t) => {
  for (const isSkipped of [true, false]) {
    const { recorder, output, write, report } = scene(isSkipped);
    void recorder.run();
    write(0, 0.9);
    t.like(report(), { state: 'recording', sequence: 0 });
    output.input.standby.begin(1);
    write(1, 1.9);
    t.like(report(), { state: isSkipped ? 'ready' : 'recording', sequence: isSkipped ? 0 : 1 });
    output.input.standby.end(2);
    write(2, 2.9);
    t.like(report(), { state: 'recording', sequence: isSkipped ? 1 : 2 });
  }
});

/** Dates of the files of a recording of a second each, in milliseconds from the first. @param lateness of the media, by its time in seconds */
function datesOf(seconds: number, lateness: (media: number) => number): number[] {
  const { recorder, output, track, report } = scene();
  void recorder.run();
  const begun = Date.now() - seconds * 1000 - 60_000;
  const dates: number[] = [];
  for (const packet of videoPackets(track, { from: 0, to: seconds })) {
    const media = packet.pts / track.timebase.den;
    output.input.arrival.note(packet, begun + media * 1000 + lateness(media));
    output.write(packet);
    const { startTime } = report() as { startTime: number };
    if (dates.at(-1) !== startTime) dates.push(startTime);
  }
  return dates.map((date) => date - begun);
}

test('a file is dated by its media, whatever is late', (t) => {
  const expected = Array.from({ length: 20 }, (_, index) => index * 1000);
  t.deepEqual(
    datesOf(20, () => 0),
    expected,
  );
  // held up for a second
  t.deepEqual(
    datesOf(20, (media) => (media >= 8 && media < 9 ? 9000 - media * 1000 : 0)),
    expected,
  );
});

test('a file that follows another one seems to follow it, too, while dates come to a clock that differs', (t) => {
  for (const differs of [4000, -4000]) {
    const dates = datesOf(20, (media) => (media >= 5 ? differs : 0));
    const steps = dates.slice(1).map((date, index) => date - (dates[index] ?? 0) - 1000);
    t.true(
      steps.every((step) => Math.abs(step) <= 10),
      steps.join(),
    );
    t.is(Math.sign(steps.at(-1) ?? 0), Math.sign(differs));
  }
});

test('a file is dated anew when the clock, or its media, has jumped', (t) => {
  const dates = datesOf(20, (media) => (media >= 5 ? 60_000 : 0));
  t.true((dates.at(-1) ?? 0) >= 79_000, dates.join());
});
