import type { JWTPayload } from 'jose';
import { Denial } from '../denial.ts';
import type { AccessRequest } from '../request.ts';

/** Claims that list what the bearer may do: Kiln's own, and that of MediaMTX (its documentation, "JWT-based authentication"). */
const CLAIMS = ['kiln_permissions', 'mediamtx_permissions'] as const;
/** Claim: when sessions of the bearer end at the latest, in seconds since the epoch. */
const SESSION_END = 'kiln_session_exp';

/** Longest path that is permitted, in characters: names of streams have 255 bytes at most. */
const MAX_PATH = 512;

/** One thing that the bearer of a token may do. */
interface Permission {
  readonly action: string;
  readonly path: string;
  /** Names of modules as `Enables` has them, in lower case; undefined: all. */
  readonly protocols: readonly string[] | undefined;
}

/**
 * Checks that a claim of a token permits a request: its action, its path `app/stream`, and its protocol.
 * @throws Denial tokenMalformed, tokenPermission
 */
export async function checkPermissions(
  claims: JWTPayload,
  request: Pick<AccessRequest, 'app' | 'stream' | 'direction' | 'protocol'>,
): Promise<void> {
  const permissions = CLAIMS.flatMap((name) => readPermissions(name, claims[name]));
  const action = actionOf(request);
  const path = `${request.app}/${request.stream}`;
  if (path.length <= MAX_PATH) {
    for (const permission of permissions) {
      if (permission.action !== action || permission.protocols?.includes(request.protocol) === false) continue;
      if (await matches(permission.path, path)) return;
    }
  }
  const shown = path.slice(0, MAX_PATH);
  throw new Denial('tokenPermission', `the token permits no ${action} of ${shown} by ${request.protocol}`);
}

/** When sessions of the bearer end at the latest, in milliseconds since the epoch; undefined: never. @throws Denial tokenMalformed */
export function sessionEnd(claims: JWTPayload): number | undefined {
  const end = claims[SESSION_END];
  if (end === undefined) return undefined;
  if (typeof end !== 'number' || !Number.isFinite(end)) throw malformed(`${SESSION_END} is no number of seconds`);
  return end * 1000;
}

/** Recordings have an action of their own, as in MediaMTX. */
function actionOf({ direction, protocol }: Pick<AccessRequest, 'direction' | 'protocol'>): string {
  if (direction === 'incoming') return 'publish';
  return protocol === 'playback' ? 'playback' : 'read';
}

/** @param given a list, or its JSON as a text, which some identity providers make of it */
function readPermissions(name: string, given: unknown): Permission[] {
  if (given === undefined) return [];
  let list = given;
  try {
    if (typeof given === 'string') list = JSON.parse(given);
  } catch {
    throw malformed(`${name} is neither a list nor JSON of one`);
  }
  if (!Array.isArray(list)) throw malformed(`${name} is no list`);
  return list.map((entry: unknown) => {
    const { action, path = '', protocols } = (entry ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof action !== 'string' || typeof path !== 'string')
      throw malformed(`${name} has an entry without action and path`);
    if (protocols === undefined) return { action, path, protocols };
    if (!Array.isArray(protocols)) throw malformed(`${name} has protocols that are no list`);
    return { action, path, protocols: protocols.map((protocol) => String(protocol).toLowerCase()) };
  });
}

/** @param pattern a path, `''` for every one, or `~` and a regular expression (RE2 syntax) */
async function matches(pattern: string, path: string): Promise<boolean> {
  if (pattern === '') return true;
  if (!pattern.startsWith('~')) return pattern === path;
  // in linear time, as MediaMTX has them: bearers choose the path
  const { RE2JS } = await import('re2js');
  try {
    return RE2JS.compile(pattern.slice(1)).test(path);
  } catch {
    throw malformed('a path of its permissions is no regular expression');
  }
}

function malformed(what: string): Denial {
  return new Denial('tokenMalformed', `the claims of the token cannot be read: ${what}`);
}
