import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { loadConfig, type LoadedConfig } from '../../../src/config/load.ts';

const HOST = '<Host><Names><Name>*</Name></Names></Host>';

/** An application element around what is given of it. */
export function application(body = '', name = 'app'): string {
  return `<Application><Name>${name}</Name><Type>live</Type>${body}</Application>`;
}

/** A virtual host element. */
export function vhost(body = '', name = 'default'): string {
  return `<VirtualHost><Name>${name}</Name>${HOST}${body}</VirtualHost>`;
}

/** An application with one output profile around what is given of it. */
export function profile(body: string, encodes = '<Encodes><Video><Bypass>true</Bypass></Video></Encodes>'): string {
  const inner = `<Name>p</Name><OutputStreamName>\${OriginStreamName}</OutputStreamName>${encodes}${body}`;
  return application(`<OutputProfiles><OutputProfile>${inner}</OutputProfile></OutputProfiles>`);
}

export interface Parts {
  /** Children of Server beside Type and IP. */
  readonly server?: string;
  readonly bind?: string;
  readonly vhosts?: string;
  readonly apps?: string;
}

/** A whole Server.xml, right in all that is not given. */
export function serverXml({ server = '', bind = '', apps, vhosts }: Parts = {}): string {
  const hosts = vhosts ?? vhost(`<Applications>${apps ?? application()}</Applications>`);
  return (
    `<Server version="8"><Type>origin</Type><IP>*</IP><Bind>${bind}</Bind>${server}` +
    `<VirtualHosts>${hosts}</VirtualHosts></Server>`
  );
}

/** Writes files into a new folder, loads its Server.xml. Paths in messages begin with `DIR/`. */
export async function load(
  t: ExecutionContext,
  files: string | Record<string, string>,
  env: Record<string, string> = {},
): Promise<LoadedConfig> {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-config-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const all = typeof files === 'string' ? { 'Server.xml': files } : files;
  for (const [name, content] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  const relative = (text: string): string => text.replaceAll(`${folder}/`, 'DIR/');
  try {
    const loaded = await loadConfig(join(folder, 'Server.xml'), { env });
    return { ...loaded, warnings: loaded.warnings.map(relative), notes: loaded.notes.map(relative) };
  } catch (error) {
    if (error instanceof Error) error.message = relative(error.message);
    throw error;
  }
}
