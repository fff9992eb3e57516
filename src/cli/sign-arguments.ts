import { isIP } from 'node:net';
import { parseArgs } from 'node:util';
import type { Signing } from '../access/policy/check.ts';
import { MAX_TIME_MS } from '../access/policy/policy.ts';
import type { PolicyFields } from '../access/policy/sign.ts';
import { urlWithPort } from '../access/request.ts';
import { parseNetworks } from '../config/values.ts';

export const SIGN_USAGE = `Signs URLs for SignedPolicy, and explains why a URL is refused.

  npm run sign -- --url URL --key SECRET --expire 1h [options]
  npm run sign -- --check URL --key SECRET [options]

  --url URL              URL to sign, with its port (the default ports of http, https, ws, wss and rtmp are added)
  --check URL            signed URL to check: prints the decision of a server; exit code 1 if it is refused
  --key SECRET           SecretKey of the virtual host
  --expire WHEN          the URL is not valid after that
  --activate WHEN        the URL is not valid before that
  --stream-expire WHEN   sessions that began with the URL end then
  --ip NETWORK           network that the connection must come from; with --check, its address
  --real-ip NETWORK      the same for the client in front of proxies
  --algorithm NAME       sha1 (default) or sha256, as Algorithm of the virtual host
  --policy-name NAME     PolicyQueryKeyName of the virtual host (default policy)
  --signature-name NAME  SignatureQueryKeyName of the virtual host (default signature)
  --help                 print this

WHEN is a time from now (90s, 15m, 1h, 7d) or a date (2030-01-31T12:00:00Z). NETWORK is 192.0.2.0/24, or an address.`;

const OPTIONS = {
  url: { type: 'string' },
  check: { type: 'string' },
  key: { type: 'string' },
  expire: { type: 'string' },
  activate: { type: 'string' },
  'stream-expire': { type: 'string' },
  ip: { type: 'string' },
  'real-ip': { type: 'string' },
  algorithm: { type: 'string', default: 'sha1' },
  'policy-name': { type: 'string', default: 'policy' },
  'signature-name': { type: 'string', default: 'signature' },
  help: { type: 'boolean', default: false },
} as const;

type Options = ReturnType<typeof parse>;

export interface SignWanted {
  readonly what: 'sign';
  readonly url: string;
  readonly fields: PolicyFields;
  readonly signing: Signing;
}

export interface CheckWanted {
  readonly what: 'check';
  readonly url: string;
  readonly signing: Signing;
  /** Address of the client; undefined: not given, and not checked. */
  readonly address: string | undefined;
  readonly realAddress: string | undefined;
}

export type SignArguments = SignWanted | CheckWanted | { readonly what: 'help' };

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DURATION = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;
const DATE = /^\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2}))?$/;
const SCHEMES = ['http', 'https', 'ws', 'wss', 'rtmp', 'rtmps', 'rtsp', 'rtsps', 'srt', 'ovt'];
const STANDARD_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443, rtmp: 1935 };

/** @throws Error that names the fault in the arguments */
export function readSignArguments(args: readonly string[], now: number): SignArguments {
  const options = parse(args);
  if (options.help) return { what: 'help' };
  if ((options.url === undefined) === (options.check === undefined))
    throw new Error('either --url or --check is needed');
  const signing = readSigning(options);
  if (options.check !== undefined) {
    const { check, ip, 'real-ip': realIp } = options;
    for (const name of ['expire', 'activate', 'stream-expire'] as const)
      if (options[name] !== undefined) throw new Error(`--${name} is for --url: --check reads it from the policy`);
    return {
      what: 'check',
      url: located(check, '--check'),
      signing,
      address: ip === undefined ? undefined : address(ip, '--ip'),
      realAddress: realIp === undefined ? undefined : address(realIp, '--real-ip'),
    };
  }
  const url = located(options.url ?? '', '--url');
  const fields = readFields(options, now);
  const taken = new URL(url).searchParams;
  for (const name of [signing.policyQueryKeyName, signing.signatureQueryKeyName])
    if (taken.has(name)) throw new Error(`--url: the URL has a parameter ${name} already`);
  return { what: 'sign', url, fields, signing };
}

function parse(args: readonly string[]) {
  return parseArgs({ args: [...args], options: OPTIONS }).values;
}

function readSigning({ key, algorithm, 'policy-name': policy, 'signature-name': signature }: Options): Signing {
  if (!key) throw new Error('--key is needed');
  if (algorithm !== 'sha1' && algorithm !== 'sha256')
    throw new Error(`--algorithm: "${algorithm}" is neither sha1 nor sha256`);
  if (policy === '') throw new Error('--policy-name: is empty');
  if (signature === '' || signature === policy) throw new Error('--signature-name: is empty, or that of the policy');
  return { policyQueryKeyName: policy, signatureQueryKeyName: signature, secretKey: key, algorithm };
}

function readFields(options: Options, now: number): PolicyFields {
  const { expire, activate, 'stream-expire': streamExpire, ip, 'real-ip': realIp } = options;
  if (expire === undefined) throw new Error('--expire is needed');
  const fields = {
    url_expire: time(expire, '--expire', now),
    ...(activate !== undefined && { url_activate: time(activate, '--activate', now) }),
    ...(streamExpire !== undefined && { stream_expire: time(streamExpire, '--stream-expire', now) }),
    ...(ip !== undefined && { allow_ip: network(ip, '--ip') }),
    ...(realIp !== undefined && { real_ip: network(realIp, '--real-ip') }),
  };
  if (fields.url_expire <= now) throw new Error('--expire: is over already');
  if (fields.url_activate !== undefined && fields.url_activate >= fields.url_expire)
    throw new Error('--activate: is not before --expire');
  return fields;
}

/** Adds the port that servers add, since it is signed. */
function located(url: string, option: string): string {
  const scheme = /^([a-z]+):\/\/[^/?#]/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === undefined || !SCHEMES.includes(scheme) || !URL.canParse(url))
    throw new Error(`${option}: "${url}" is no URL of ${SCHEMES.join(', ')}`);
  if (url.includes('#')) throw new Error(`${option}: what follows a # is not sent to servers`);
  const { url: full, isPortAssumed } = urlWithPort(url, STANDARD_PORTS[scheme] ?? 0);
  if (isPortAssumed && STANDARD_PORTS[scheme] === undefined)
    throw new Error(`${option}: the URL has no port, which has to be signed as well`);
  // clients send scheme and host in lower case
  return full.replace(/^[^/]+:\/\/[^/?#]+/, (start) => start.toLowerCase());
}

function time(text: string, option: string, now: number): number {
  const [, count, unit = ''] = DURATION.exec(text) ?? [];
  const found =
    count === undefined ? (DATE.test(text) ? Date.parse(text) : NaN) : now + Number(count) * (UNITS[unit] ?? 0);
  if (Number.isNaN(found) || found > MAX_TIME_MS)
    throw new Error(
      `${option}: "${text}" is neither a time such as 90s, 15m, 1h, 7d nor a date such as 2030-01-31T12:00:00Z`,
    );
  return Math.round(found);
}

function network(text: string, option: string): string {
  if (parseNetworks(text) === undefined) throw new Error(`${option}: "${text}" is no network such as 192.0.2.0/24`);
  return text;
}

function address(text: string, option: string): string {
  if (isIP(text) === 0)
    throw new Error(`${option}: "${text}" is no address, which --check compares with the policy's network`);
  return text;
}
