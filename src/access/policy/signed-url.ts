import { percentDecoded } from '../../lib/percent.ts';
import { Denial } from '../denial.ts';

/** Names of the parameters of signed URLs. */
export interface ParameterNames {
  readonly policyQueryKeyName: string;
  readonly signatureQueryKeyName: string;
}

/** A URL in the parts that signing is about. */
export interface SignedUrl {
  /** Value of the policy parameter. */
  readonly policy: string;
  /** Value of the signature parameter. */
  readonly signature: string;
  /** The URL without the signature parameter, everything else as it was given. */
  readonly text: string;
}

/** Longest URL that is read, in characters. */
const MAX_URL = 8192;

/** @throws Denial policyMissing, policyMalformed */
export function splitSignedUrl(url: string, names: ParameterNames): SignedUrl {
  if (url.length > MAX_URL) throw new Denial('policyMalformed', `the URL is longer than ${MAX_URL} characters`);
  const policy = only(url, names.policyQueryKeyName, 'policy');
  const signature = only(url, names.signatureQueryKeyName, 'signature');
  return { policy, signature, text: withoutParameter(url, names.signatureQueryKeyName) };
}

/** A URL without a parameter of its query; the order of the others stays. */
export function withoutParameter(url: string, name: string): string {
  const mark = url.indexOf('?');
  if (mark < 0) return url;
  const rest = parametersOf(url).filter((parameter) => nameOf(parameter) !== name);
  return rest.length === 0 ? url.slice(0, mark) : `${url.slice(0, mark)}?${rest.join('&')}`;
}

/** Appends a parameter to the query of a URL. */
export function withParameter(url: string, name: string, value: string): string {
  const separator = !url.includes('?') ? '?' : /[?&]$/.test(url) ? '' : '&';
  return `${url}${separator}${encodeURIComponent(name)}=${value}`;
}

function only(url: string, name: string, what: string): string {
  const found = parametersOf(url).filter((parameter) => nameOf(parameter) === name);
  const [first = ''] = found;
  const mark = first.indexOf('=');
  const value = mark < 0 ? '' : percentDecoded(first.slice(mark + 1));
  if (value === '') throw new Denial('policyMissing', `the URL has no ${what} (parameter ${name})`);
  if (found.length > 1) throw new Denial('policyMalformed', `the URL has more than one ${what} (parameter ${name})`);
  return value;
}

function parametersOf(url: string): string[] {
  const mark = url.indexOf('?');
  return mark < 0 ? [] : url.slice(mark + 1).split('&');
}

function nameOf(parameter: string): string {
  return percentDecoded(parameter.split('=', 1)[0] as string);
}
