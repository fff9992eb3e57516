import Type, { type Static } from 'typebox';
import type { VirtualHostConfig } from '../../config/model.ts';
import { nameObjection } from '../../core/names.ts';
import { kilnError } from '../../errors.ts';
import { isDocument } from '../../management/documents.ts';
import { cutsCredentials, FRAGMENT_FAULT } from '../../protocols/outbound/fragment.ts';
import { shownUrl } from '../../protocols/outbound/shown.ts';
import type { PullOrder } from '../../providers/pull/spec.ts';
import { objectOf } from '../envelope.ts';

const PROPERTIES = {
  persistent: Type.Boolean(),
  ignoreRtcpSRTimestamp: Type.Boolean(),
  relay: Type.Boolean(),
  noInputFailoverTimeoutMs: Type.Integer({ minimum: 0 }),
  unusedStreamDeletionTimeoutMs: Type.Integer({ minimum: 0 }),
  retryCount: Type.Integer({ minimum: 0 }),
};

const Properties = Type.Object(PROPERTIES);

/** Request of a client to pull a stream (docs/compatibility.md#pull-requests); times in milliseconds. */
export interface PullRequest {
  readonly name: string;
  /** At least one; all of one scheme. */
  readonly urls: readonly string[];
  readonly properties: Partial<Static<typeof Properties>>;
}

/** Body in the description of the API; `readPullRequest` checks it, with texts of its own. */
export const PullCreation = Type.Object({
  name: Type.String(),
  urls: Type.Array(Type.String(), { description: 'all of one scheme', minItems: 1 }),
  properties: Type.Optional(Type.Partial(Properties)),
});

const MAX_URLS = 64;
const NO_INPUT_MS = 3000;
const UNUSED_MS = 60_000;

/**
 * Checks the body of a pull creation, with the texts of OvenMediaEngine (docs/compatibility.md#pull-requests).
 * @throws bodyNotObject, pullInvalid
 */
export function readPullRequest(body: unknown): PullRequest {
  const { name, urls, properties = {} } = objectOf(body);
  if (name === undefined || urls === undefined) throw kilnError('pullInvalid', 'Stream name or urls is required');
  const objection = typeof name === 'string' ? nameObjection(name) : 'is not a string';
  if (objection !== undefined) throw kilnError('pullInvalid', `name ${objection}`);
  if (!Array.isArray(urls) || urls.length === 0) throw kilnError('pullInvalid', 'Urls must be at least one');
  if (urls.length > MAX_URLS) throw kilnError('pullInvalid', `Urls must be at most ${MAX_URLS}`);
  const schemes = new Set<string>();
  for (const url of urls as unknown[]) {
    if (typeof url !== 'string') throw kilnError('pullInvalid', 'Url must be a string');
    if (cutsCredentials(url)) throw kilnError('pullInvalid', `Invalid URL: ${shownUrl(url)} (${FRAGMENT_FAULT})`);
    if (!URL.canParse(url) || new URL(url).hostname === '')
      throw kilnError('pullInvalid', `Invalid URL: ${shownUrl(url)}`);
    schemes.add(new URL(url).protocol);
  }
  if (schemes.size > 1) throw kilnError('pullInvalid', 'Only urls with the same scheme can be sent as a group.');
  checkProperties(properties);
  return { name: name as string, urls: urls as string[], properties };
}

/** Settings of the pull, with the defaults of docs/compatibility.md#pull-requests. */
export function orderOf({ urls, properties }: PullRequest, { origins }: VirtualHostConfig): PullOrder {
  const {
    persistent = false,
    relay = false,
    ignoreRtcpSRTimestamp: ignoresReports = false,
    noInputFailoverTimeoutMs,
    unusedStreamDeletionTimeoutMs,
    retryCount,
  } = properties;
  const spec = {
    urls: [...urls],
    relay,
    ignoresReports,
    noInputFailoverMs: noInputFailoverTimeoutMs ?? NO_INPUT_MS,
    unusedMs: unusedStreamDeletionTimeoutMs ?? UNUSED_MS,
    retryCount: retryCount || origins?.properties.retryCount || 0,
    failbackMs: 0,
    isFromStore: false,
  };
  return { spec, persistent };
}

function checkProperties(properties: unknown): asserts properties is Partial<Static<typeof Properties>> {
  if (!isDocument(properties)) {
    throw kilnError('pullInvalid', 'properties must be an object');
  }
  for (const [key, value] of Object.entries(properties)) {
    const wanted = Object.hasOwn(PROPERTIES, key) ? PROPERTIES[key as keyof typeof PROPERTIES].type : undefined;
    if (wanted === 'boolean' && typeof value !== 'boolean') throw kilnError('pullInvalid', `${key} must be a boolean`);
    if (wanted === 'integer' && !(Number.isSafeInteger(value) && (value as number) >= 0)) {
      throw kilnError('pullInvalid', `${key} must be a whole number, not below 0`);
    }
  }
}
