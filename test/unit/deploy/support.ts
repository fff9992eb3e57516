import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { parseAllDocuments } from 'yaml';
import { loadConfig } from '../../../src/config/load.ts';
import type { ServerConfig } from '../../../src/config/model.ts';

export const ROOT = join(import.meta.dirname, '../../..');

/** What a stop takes after the drain: the server ends it by itself then. */
export const STOP_S = 10;

/** What a node has to be told in any case. */
export const LEAST = {
  KILN_ACCESS_TOKEN: 'x',
  KILN_CLUSTER_SECRET: 'x',
  KILN_NODE_ID: 'x',
  KILN_ADVERTISE_ADDRESS: 'x',
};

export function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** The documents of a YAML file, which has no fault. */
export function documents<T>(t: ExecutionContext, file: string): T[] {
  return parseAllDocuments(read(file), { merge: true }).map((document) => {
    t.deepEqual([...document.errors, ...document.warnings], [], file);
    return document.toJS() as T;
  });
}

/** config/cluster.xml as a node reads it that has this environment and nothing else. */
export async function configOf(t: ExecutionContext, env: Readonly<Record<string, string>>): Promise<ServerConfig> {
  for (const name of Object.keys(env)) t.true(read('config/cluster.xml').includes(`\${env:${name}`), `${name} is used`);
  return (await loadConfig(join(ROOT, 'config/cluster.xml'), { env })).config;
}

/** What others connect to: ports of publishers and players, the API and the nodes, as `port/protocol`. */
export function openPorts({ bind, cluster }: ServerConfig): string[] {
  const { managers, providers, publishers } = bind;
  const http = [
    publishers.llhls?.port,
    publishers.hls?.port,
    publishers.thumbnail?.port,
    publishers.webrtc?.signalling.port,
    providers.webrtc?.signalling.port,
  ];
  const tcp = new Set([providers.rtmp?.port, ...http, publishers.ovt?.port, managers.api?.port, cluster?.node.port]);
  return [...[...tcp].map((port) => `${port}/tcp`), ...srtPorts(bind).map((port) => `${port}/udp`)];
}

/** Where SRT is published to, and where it is played from. */
export function srtPorts({ providers, publishers }: ServerConfig['bind']): number[] {
  return [providers.srt, publishers.srt].flatMap((srt) => (srt?.port ?? []).map(({ first }) => first));
}

/** Ports of WebRTC's media, as `port/protocol`. */
export function icePorts({ bind }: ServerConfig): string[] {
  return (bind.publishers.webrtc?.iceCandidates.iceCandidate ?? []).flatMap(({ first, last, protocol }) =>
    Array.from({ length: last - first + 1 }, (_, index) => `${first + index}/${protocol}`),
  );
}
