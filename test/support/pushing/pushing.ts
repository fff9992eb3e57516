import type { BlockList } from 'node:net';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import { StartCaches } from '../../../src/core/start-caches.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import type { Track } from '../../../src/core/track.ts';
import { asJson } from '../../../src/lib/as-json.ts';
import { OutboundGuard } from '../../../src/protocols/outbound/guard.ts';
import { SrtCalls } from '../../../src/protocols/srt/calls.ts';
import { PushError } from '../../../src/pushing/error.ts';
import { ipCarrier } from '../../../src/pushing/ip-carriers.ts';
import { PushKind } from '../../../src/pushing/kind.ts';
import type { PushReport } from '../../../src/pushing/progress.ts';
import { rtmpSink } from '../../../src/pushing/rtmp-sink.ts';
import type { PushSpec } from '../../../src/pushing/spec.ts';
import { rtspSink } from '../../../src/pushing/rtsp-sink.ts';
import { srtCarrier } from '../../../src/pushing/srt-carrier.ts';
import { keepStarts } from '../../../src/pushing/starts.ts';
import { tsSink } from '../../../src/pushing/ts-sink.ts';
import { whipSink } from '../../../src/pushing/whip-sink.ts';
import type { WorkerPool } from '../../../src/webrtc/worker-pool.ts';
import { openAlone } from '../cluster/cluster.ts';
import { codedPackets, tracksOf, type Coded } from '../media/coded-packets.ts';
import { openTasks } from '../tasks/fake-task.ts';
import { until } from '../time/until.ts';

export const PUSH_NAME = { kind: 'push', vhost: 'default', app: 'app', id: 'one' };
const KEPT = { persistent: true, withinMs: 5000 };

/** Networks that pushes may go to; anywhere without them. */
interface Allowed {
  readonly networks: BlockList;
  readonly element: string;
}

/** A node that pushes, whose log is kept. @param pool media workers for WHIP */
export async function pushing(t: ExecutionContext, push: object = {}, allowed?: Allowed, pool?: WorkerPool) {
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const guard = new OutboundGuard({
    action: 'pushing to',
    error: (reason) => new PushError(reason),
    nodes: () => [],
    ports: { tcp: new Set(), udp: new Set() },
    stores: () => [],
    ...(allowed && { allowed }),
  });
  const srt = new SrtCalls(guard, log);
  const caches = new StartCaches(new Registry(), 'pushed');
  const kind = new PushKind({
    sinks: {
      rtmp: rtmpSink(guard),
      mpegts: tsSink(ipCarrier(guard)),
      srt: tsSink(srtCarrier(srt)),
      rtsp: rtspSink(guard),
      whip: whipSink({ pool: () => pool, guard }),
    },
    caches,
    log,
  });
  const publishers = { push: { connectionTimeout: 5000, sendTimeout: 2000, ...push } } as never;
  const node = openTasks(await openAlone(), kind, { publishers });
  const undo = keepStarts(node.registry, node.tasks.definitions, caches);
  t.teardown(async () => {
    undo();
    caches.close();
    await node.tasks.close();
    await srt.close();
    await node.cluster.close();
  });
  return { ...node, lines };
}

export const videos = (packets: readonly Packet[]) => packets.filter(({ track }) => track.type === 'video');

export type Node = Awaited<ReturnType<typeof pushing>>;

/** Each is encoded once. */
const encoded = new Map<string, readonly Packet[]>();

/** Plays coded packets on an output stream, some at once. */
export class Feed {
  readonly packets: readonly Packet[];
  readonly output: OutputStream;
  #at = 0;

  constructor(output: OutputStream, coded: Coded) {
    const key = JSON.stringify(coded);
    this.packets = encoded.get(key) ?? codedPackets(coded);
    encoded.set(key, this.packets);
    this.output = output;
    output.setTracks(this.tracks);
  }

  get tracks(): readonly Track[] {
    return tracksOf(this.packets);
  }

  write(count: number): void {
    for (const packet of this.packets.slice(this.#at, this.#at + count)) this.output.write(packet);
    this.#at += count;
  }
}

export const CODED: Coded = { video: { codec: 'H264', rate: 25, gop: 25 }, audio: 'AAC', seconds: 4 };

export function startPush(node: Node, port: number, more: Partial<PushSpec> = {}): Promise<void> {
  const spec = {
    stream: { name: 'live', trackIds: [], variantNames: [] },
    protocol: 'rtmp',
    url: `rtmp://127.0.0.1:${port}/app`,
    streamKey: 'very-secret-key',
    createdTime: Date.now(),
    ...more,
  };
  return node.everywhere.create(PUSH_NAME, asJson(spec), KEPT);
}

export const reportOf = (node: Node) =>
  node.tasks.reports({ kind: 'push', vhost: 'default', app: 'app' }).get('one') as PushReport | undefined;
export const inState = (node: Node, state: PushReport['state']) =>
  until(`the push is ${state}`, () => {
    const report = reportOf(node);
    return report?.state === state && report;
  });
