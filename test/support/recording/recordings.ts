import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import { Registry } from '../../../src/core/registry.ts';
import { OtherNodes } from '../../../src/peers/other-nodes.ts';
import { PeerCalls } from '../../../src/peers/peer-calls.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Track } from '../../../src/core/track.ts';
import { ClusterTasks } from '../../../src/tasks/cluster-tasks.ts';
import { Journal, type FinishedFile } from '../../../src/recording/journal.ts';
import { RecordKind } from '../../../src/recording/kind.ts';
import { RecordStarts } from '../../../src/recording/starts.ts';
import { Records } from '../../../src/recording/records.ts';
import type { RecordSpec } from '../../../src/recording/spec.ts';
import { Tasks } from '../../../src/tasks/tasks.ts';
import { openAlone } from '../cluster/cluster.ts';
import { addVhost, goLive } from '../server/live.ts';
import { until } from '../time/until.ts';

/** A node whose application `app` records below a folder of its own. */
export async function openRecords(t: ExecutionContext, file: Partial<ApplicationConfig['publishers']['file']> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-records-'));
  const root = join(folder, 'root');
  const log = pino({ level: 'silent' });
  const registry = new Registry();
  addVhost(registry, { publishers: { file: { rootPath: root, ...file } } as ApplicationConfig['publishers'] });
  const cluster = await openAlone();
  const calls = new PeerCalls(cluster, log);
  const tasks = new Tasks({ cluster, registry, calls, log });
  const handed: FinishedFile[] = [];
  const deliver = async (file: FinishedFile): Promise<void> => void handed.push(file);
  const journal = new Journal({ folder: join(folder, 'journal'), log, deliver });
  const starts = new RecordStarts(registry, tasks.definitions);
  tasks.add(new RecordKind({ folder, journal, start: (task, output) => starts.take(task, output), log }));
  const clusterTasks = new ClusterTasks({ cluster, tasks, others: new OtherNodes(cluster, calls), calls, log });
  const records = new Records({ tasks: clusterTasks, folder });
  tasks.start();
  t.teardown(async () => {
    await tasks.close();
    starts.close();
    await cluster.close();
    rmSync(folder, { recursive: true });
  });
  const application = registry.vhost('default').application('app');
  return {
    root,
    folder,
    journal,
    /** What is to be delivered, in the order in which it was finished. */
    handed,
    records,
    application,
    log,
    /** Makes a stream live, whose task records from the next packet on. */
    async publish(tracks: readonly Track[], id?: string, stream = 'stream') {
      const output = goLive(registry, 'app', stream, tracks);
      application.announce(output);
      if (id !== undefined) await until('the stream is read', () => output.readers > 0);
      return output;
    },
    /** Stops a recording, and waits until all its files have their names: that may take a busy disk long. */
    async stop(id: string) {
      const stopped = await records.stop(application, id);
      await until('all files are complete', async () => (await journal.list()).length === 0);
      return stopped;
    },
    /** Names of all files below the root, in order. */
    files: (): string[] =>
      readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory())
        .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1))
        .sort(),
  };
}

export function recordSpec(spec: Partial<RecordSpec> = {}): RecordSpec {
  return {
    stream: { name: 'stream', trackIds: [], variantNames: [] },
    segmentationRule: 'discontinuity',
    createdTime: Date.now(),
    ...spec,
  };
}

/** The same packets later. */
export function shifted(packets: readonly Packet[], seconds: number): Packet[] {
  return packets.map((packet) => {
    const by = Math.round((seconds * packet.track.timebase.den) / packet.track.timebase.num);
    return { ...packet, dts: packet.dts + by, pts: packet.pts + by };
  });
}
