import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Json } from '#cluster';
import { Registry } from '../../../src/core/registry.ts';
import { StartCaches } from '../../../src/core/start-caches.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import { StreamChanges } from '../../../src/directory/stream-changes.ts';
import type { StreamNames } from '../../../src/directory/stream-names.ts';
import { LiveSources } from '../../../src/channels/sources/live-sources.ts';
import { ScheduledKind } from '../../../src/channels/scheduled/kind.ts';
import type { ScheduleReport } from '../../../src/channels/scheduled/report.ts';
import type { ScheduleSpec } from '../../../src/channels/scheduled/spec.ts';
import { TaskEnd, type Task } from '../../../src/tasks/kind.ts';
import { NO_LOOPS } from './no-loops.ts';
import { addVhost } from '../server/live.ts';

/** A registry with `app`, whose channels play the files of a folder, and the kind of its tasks. @param program in the place of ffmpeg */
export function openScheduled(
  t: ExecutionContext,
  folder: string,
  providers: object = { schedule: { mediaRootDir: '.' } },
  program = 'ffmpeg',
) {
  const registry = new Registry();
  addVhost(registry, { providers: providers as never });
  const application = registry.vhost('default').application('app');
  const changes = new StreamChanges(registry, { listen: () => () => {} });
  const caches = new StartCaches(registry, 'channel');
  const find = async (): Promise<undefined> => undefined;
  const sources = new LiveSources({ registry, find, changes, caches, graph: NO_LOOPS });
  const names = {
    publish: async (...[app, name, source, options]: Parameters<StreamNames['publish']>) =>
      app.publish(name, source, options),
  } as StreamNames;
  const lines: { level: string; msg: string; reason?: string }[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const ffmpeg = async (): Promise<string> => program;
  const kind = new ScheduledKind({ names, changes, sources, ffmpeg, folder, log });
  t.teardown(() => {
    changes.close();
    caches.close();
    registry.close('the test is over');
  });
  return {
    registry,
    application,
    kind,
    lines,
    play: (spec: ScheduleSpec, id = 'tv', run = (task: Task) => kind.run(task), progress?: Json) =>
      play(run, application, spec, id, progress),
    standBy: (spec: ScheduleSpec, id = 'tv') =>
      kind.standBy({ name: nameOf(id), spec: spec as unknown as Json, application }),
  };
}

const nameOf = (id: string) => ({ kind: 'scheduled', vhost: 'default', app: 'app', id });

/** Runs a channel, whose packets are kept. */
function play(
  run: (task: Task) => Promise<void>,
  application: ReturnType<typeof openScheduled>['application'],
  spec: ScheduleSpec,
  id: string,
  progress: Json | undefined,
) {
  const stop = new AbortController();
  const packets: Packet[] = [];
  /** When each of them was written, in milliseconds since the epoch. */
  const times: number[] = [];
  let report: () => Json = () => null;
  let change: (spec: Json) => void = () => {};
  let kept: Json | undefined;
  let isStarted = false;
  const onOutput = (output: OutputStream): void => {
    if (output.name !== id) return;
    output.read({
      packet: (packet) => {
        packets.push(packet);
        times.push(Date.now());
      },
    });
  };
  application.vhost.registry.on('output', onOutput);
  let handsOver: Parameters<Task['handsOver']>[0];
  const over = run({
    name: nameOf(id),
    spec: spec as unknown as Json,
    persistent: true,
    application,
    isNew: true,
    signal: stop.signal,
    fence: 1,
    valid: true,
    progress,
    keep: (value) => void (kept = value),
    started: () => void (isStarted = true),
    show: (shown) => void (report = shown),
    changed: (listener) => void (change = listener),
    handsOver: (listener) => void (handsOver = listener),
  });
  over.catch(() => {});
  return {
    packets,
    times,
    over,
    get report() {
      return report() as unknown as ScheduleReport;
    },
    /** What it leaves for the next run. */
    get kept() {
      return kept;
    },
    get isStarted() {
      return isStarted;
    },
    change: (changed: ScheduleSpec) => change(changed as unknown as Json),
    /** Ends it at its own moment. */
    handOver: async () => {
      handsOver?.(() => stop.abort(new TaskEnd('handedOver', 'the node is draining')));
      await over;
    },
    stop: async (cause: TaskEnd['reason'] = 'removed') => {
      stop.abort(new TaskEnd(cause, 'the test is over'));
      await over;
    },
  };
}
