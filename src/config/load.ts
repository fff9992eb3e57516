import { randomBytes } from 'node:crypto';
import type { networkInterfaces } from 'node:os';
import { dirname } from 'node:path';
import { certificateProblems } from './certificate-problems.ts';
import { ConfigError } from './config-error.ts';
import { inconsistencies } from './consistency.ts';
import { drmProblems } from './drm-info.ts';
import { Server } from './elements/server.ts';
import { manyIceAddresses } from './ice-addresses.ts';
import { expandIncludes } from './include.ts';
import { expandEnvironment, expandPublicAddress, usesPublicAddress, type Environment } from './macros.ts';
import type { ServerConfig } from './model.ts';
import { elementPath } from './names.ts';
import { pendingModules } from './pending.ts';
import { publicAddress } from './public-ip.ts';
import { readConfig } from './read.ts';
import type { Path, Problem } from './resolve.ts';
import { XmlToJson, type Finding } from './xml-json.ts';
import { readXml, type XmlElement } from './xml.ts';

export { ConfigError };

const ROOT = 'Server';
const VERSION = 8;
const TOKEN_BYTES = 16;

export interface LoadedConfig {
  readonly config: ServerConfig;
  /** Lines for the log. */
  readonly warnings: readonly string[];
  /** Lines for the log about valid elements without effect. */
  readonly notes: readonly string[];
  /** Access token of the API, if one was generated because none was given. */
  readonly generatedAccessToken: string | undefined;
}

export interface LoadOptions {
  readonly env: Environment;
  /** Network interfaces of this machine, for warnings about ICE addresses. */
  readonly interfaces?: ReturnType<typeof networkInterfaces>;
}

/**
 * Loads Server.xml with what it includes (docs/compatibility.md#configuration).
 * @throws ConfigError with one line per problem: file, element path, value
 */
export async function loadConfig(file: string, { env, interfaces = {} }: LoadOptions): Promise<LoadedConfig> {
  const warnings: string[] = [];
  const warn = (line: string): void => void warnings.push(line);
  const root = await expand(file, env, warn);
  checkVersion(root);

  const mapper = new XmlToJson();
  const { version: _, ...attributes } = root.attributes;
  const json = mapper.map(Server, { ...root, attributes }, ROOT) as Json;
  for (const finding of mapper.warnings) warn(lineOf(finding));
  refuse(mapper.problems.map(lineOf));

  const line = ({ path, message }: Problem): string => {
    const element = elementPath(ROOT, Server, path);
    return `${fileAt(mapper, json, path) ?? file}: ${element}: ${message}${unsetText(mapper.unsetAt(element), env)}`;
  };
  const generatedAccessToken = provideToken(json);
  const reading = readConfig(Server, json);
  warnings.push(...reading.warnings.map(line));
  if (!reading.ok) {
    const typos = mapper.warnings.filter(({ isTypo }) => isTypo === true);
    throw new ConfigError([...reading.problems.map(line), ...typos.map(lineOf)]);
  }
  const { config } = reading;
  refuse(inconsistencies(config).map(line));
  refuse(drmProblems(config, dirname(file)).map(line));
  refuse((await certificateProblems(config, dirname(file))).map(line));
  const addresses = Object.values(interfaces).flatMap((list) => list ?? []);
  warnings.push(...manyIceAddresses(config, addresses).map(line));
  const elements = new Set(reading.inert.map((path) => elementPath(ROOT, Server, path).replace(/^Server\//, '')));
  const notes = elements.size === 0 ? [] : [`elements without effect in Kiln: ${[...elements].join(', ')}`];
  return { config, warnings: [...warnings, ...pendingModules(config)], notes, generatedAccessToken };
}

async function expand(file: string, env: Environment, warn: (line: string) => void): Promise<XmlElement> {
  const prepare = (element: XmlElement): XmlElement => expandEnvironment(element, env);
  const root = expandIncludes(readXml(file), prepare, warn);
  if (!usesPublicAddress(root)) return root;
  const stunServer = root.children.find(({ name }) => name === 'StunServer')?.text;
  return expandPublicAddress(root, await publicAddress(stunServer, warn));
}

function lineOf({ file, path, message }: Finding): string {
  return `${file}: ${path}: ${message}`;
}

/** Example: ` (the environment variable KILN_CLUSTER_SECRET is not set)` */
function unsetText(names: readonly string[], env: Environment): string {
  if (names.length === 0) return '';
  const states = names.map((name) => `${name} is ${env[name] === undefined ? 'not set' : 'empty'}`);
  return ` (the environment variable ${states.join(', ')})`;
}

function checkVersion({ name, file, attributes: { version } }: XmlElement): void {
  if (name !== ROOT) throw new ConfigError([`${file}: ${name}: the root element must be ${ROOT}`]);
  const at = `${file}: ${ROOT}/@version:`;
  if (version === undefined) throw new ConfigError([`${at} is missing (${VERSION} is supported)`]);
  if (!/^\d{1,9}$/.test(version)) throw new ConfigError([`${at} "${version}" is not a version number`]);
  if (Number(version) === VERSION) return;
  const age = Number(version) < VERSION ? 'old' : 'new';
  throw new ConfigError([`${at} "${version}" is too ${age}: only version ${VERSION} is supported`]);
}

function refuse(lines: readonly string[]): void {
  if (lines.length > 0) throw new ConfigError(lines);
}

interface Json {
  readonly bind?: { readonly managers?: { readonly api?: { readonly port?: unknown; readonly tlsPort?: unknown } } };
  readonly managers?: { api?: { accessToken?: unknown } };
  readonly cluster?: unknown;
}

/** Generates an access token if the API is on and none is given, except in a cluster. */
function provideToken({ bind, managers, cluster }: Json): string | undefined {
  const api = bind?.managers?.api;
  const given = managers?.api?.accessToken ?? '';
  const off = api === undefined || (api.port ?? api.tlsPort) === undefined;
  if (off || managers === undefined || cluster !== undefined || given !== '') return undefined;
  const accessToken = `kiln:${randomBytes(TOKEN_BYTES).toString('hex')}`;
  managers.api = { ...managers.api, accessToken };
  return accessToken;
}

/** File of the innermost included element on the way to a value. */
function fileAt(mapper: XmlToJson, json: unknown, path: Path): string | undefined {
  let file: string | undefined;
  let at = json;
  for (const step of [...path, undefined]) {
    if (typeof at !== 'object' || at === null) break;
    file = mapper.fileOf(at) ?? file;
    if (step !== undefined) at = (at as Record<string | number, unknown>)[step];
  }
  return file;
}
