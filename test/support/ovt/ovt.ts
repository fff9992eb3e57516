import { BlockList } from 'node:net';
import { pino } from 'pino';
import type { AccessOptions } from '../../../src/access/access.ts';
import type { FindOutput } from '../../../src/core/find-output.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Playlist } from '../../../src/core/playlist.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { Track } from '../../../src/core/track.ts';
import {
  OvtClient,
  type OvtClientOptions,
  type OvtConnection,
  type OvtSink,
} from '../../../src/providers/ovt/client.ts';
import { OvtError } from '../../../src/protocols/ovt/error.ts';
import { OvtServer } from '../../../src/publishers/ovt/server.ts';
import { aloneWith } from '../cluster/alone.ts';
import { addVhost, type VhostShape } from '../server/live.ts';

export const silent = pino({ level: 'silent' });

/** Networks as Bind/Publishers/OVT names them. */
export function networks(...subnets: readonly (readonly [address: string, prefix: number])[]): BlockList {
  const list = new BlockList();
  for (const [address, prefix] of subnets) list.addSubnet(address, prefix, address.includes(':') ? 'ipv6' : 'ipv4');
  return list;
}

export interface OvtSetup {
  readonly publishers?: VhostShape['publishers'];
  readonly signedPolicy?: VhostShape['signedPolicy'];
  readonly outputProfile?: VhostShape['outputProfile'];
  readonly networks?: BlockList;
  readonly find?: FindOutput;
  readonly access?: Partial<AccessOptions>;
}

/** A registry with `app`, and an OVT server of it on a free port. */
export async function startOvt(setup: OvtSetup = {}) {
  const registry = new Registry();
  const publishers = setup.publishers ?? { ovt: { maxConnection: 0, delayBufferTimeMs: 0 } as never };
  addVhost(registry, {
    hostNames: ['127.0.0.1', 'localhost'],
    publishers,
    signedPolicy: setup.signedPolicy,
    outputProfile: setup.outputProfile,
  });
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const { access } = await aloneWith(registry, {
    log,
    ...(setup.find && { find: setup.find }),
    ...setup.access,
  });
  const server = await OvtServer.listen({
    registry,
    access,
    log,
    host: '127.0.0.1',
    port: 0,
    networks: setup.networks ?? networks(['127.0.0.0', 8]),
  });
  return {
    registry,
    access,
    server,
    lines,
    url: (path: string) => `ovt://127.0.0.1:${server.port}/${path}`,
    async close(): Promise<void> {
      registry.close('the test is over');
      await server.close();
    },
  };
}

/** Everything that a client hears of a stream. */
export class Recorder implements OvtSink {
  readonly told: { tracks: readonly Track[]; playlists: readonly Playlist[] }[] = [];
  readonly packets: Packet[] = [];
  ended: { reason: string; forGood: boolean } | undefined;
  bytes = 0;

  /** Those of the track of an id. */
  of(id: number): Packet[] {
    return this.packets.filter(({ track }) => track.id === id);
  }

  tracks(tracks: readonly Track[], playlists: readonly Playlist[]): void {
    this.told.push({ tracks, playlists });
  }

  packet(packet: Packet): void {
    this.packets.push(packet);
  }

  received(bytes: number): void {
    this.bytes += bytes;
  }

  end(reason: string, forGood: boolean): void {
    this.ended = { reason, forGood };
  }
}

const TRIES = 5;

/** Connects and plays; again where a machine that stood still kept the answer from coming in time. @throws OvtError */
export async function playOvt(to: string | OvtConnection, options: Partial<OvtClientOptions> = {}) {
  for (let left = TRIES - 1; ; left--) {
    try {
      const client = await OvtClient.connect(to, { log: silent, ...options });
      const recorder = new Recorder();
      await client.play(recorder);
      return { client, recorder };
    } catch (error) {
      const isLate = error instanceof OvtError && error.message.endsWith('in time');
      if (typeof to !== 'string' || !isLate || left === 0) throw error;
    }
  }
}
