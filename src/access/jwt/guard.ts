import { isEnabled } from '../../config/enables.ts';
import type { VirtualHostConfig } from '../../config/model.ts';
import { accessDenied, Denial } from '../denial.ts';
import type { Guard, LocalVerdict } from '../guard.ts';
import { withoutParameter } from '../policy/signed-url.ts';
import { markOf } from '../revocations.ts';
import type { AccessRequest } from '../request.ts';
import type { JwtConfig, KeySources } from './key-sources.ts';
import { checkPermissions, sessionEnd } from './permissions.ts';
import { MAX_TOKEN, verifyToken } from './verify.ts';

/** Admits clients with a signed token that permits what they ask for, where JWT is enabled for their module. */
export function jsonWebTokens(sources: KeySources): Guard {
  return (request, { config: { jwt } }) => {
    if (jwt === undefined || !isEnabled(jwt.enables, request)) return undefined;
    try {
      const token = tokenOf(request, jwt);
      return () => judge(token, request, jwt, sources);
    } catch (error) {
      throw denied(error);
    }
  };
}

/** A query without the token of an admitted client: what follows does not need it. @param search without `?` */
export function withoutToken(search: string, { jwt }: VirtualHostConfig, client: AccessRequest): string {
  return jwt === undefined || !isEnabled(jwt.enables, client)
    ? search
    : withoutParameter(`?${search}`, jwt.queryKeyName).slice(1);
}

async function judge(
  token: string,
  request: AccessRequest,
  jwt: JwtConfig,
  sources: KeySources,
): Promise<LocalVerdict> {
  try {
    const { issuer, audience } = jwt;
    const { claims, kid } = await verifyToken(token, sources.of(jwt), { issuer, audience });
    await checkPermissions(claims, request);
    const until = sessionEnd(claims);
    if (until !== undefined && until <= Date.now())
      throw new Denial('tokenExpired', 'the time for sessions of the token is over');
    const { jti, sub } = claims;
    const marks = Object.entries({ jti, sub, kid }).flatMap(([field, value]) =>
      typeof value === 'string' ? [markOf(field as 'jti', value)] : [],
    );
    return { marks, ...(until !== undefined && { until }) };
  } catch (error) {
    throw denied(error);
  }
}

/** The token of a header (RFC 6750 section 2.1), or else that of the query. @throws Denial tokenMissing, tokenMalformed */
function tokenOf({ bearer, query }: AccessRequest, { queryKeyName }: JwtConfig): string {
  const [asked, ...more] = query.getAll(queryKeyName);
  if (more.length > 0) throw new Denial('tokenMalformed', `the URL has more than one ${queryKeyName}`);
  const token = bearer ?? asked ?? '';
  if (token === '') throw new Denial('tokenMissing', 'there is no token, in a header nor in the URL');
  if (token.length > MAX_TOKEN) throw new Denial('tokenMalformed', `the token is longer than ${MAX_TOKEN} characters`);
  return token;
}

function denied(error: unknown): unknown {
  return error instanceof Denial ? accessDenied(error) : error;
}
