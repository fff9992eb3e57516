import { createHash, randomBytes } from 'node:crypto';
import { RtmpError } from './error.ts';

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

/** Limit for a server's description, which is sent back in an AMF0 string. Real ones are shorter. */
const MAX_DESCRIPTION = 2048;
/** The realm and the instance that Limelight's servers assume. */
const REALM = 'live';
const DEFAULT_INSTANCE = '_definst_';
const FIRST = '00000001';

/**
 * A publisher's side of the authentication that encoders share with Flash Media Server, Wowza and Akamai (`authmod=adobe`)
 * and with Limelight (`authmod=llnw`, a digest like that of RFC 2617). A server rejects `connect` and says in the description
 * what it needs; the next connection has that in the query of its application. The password itself is never sent.
 */
export class PublisherAuthentication {
  readonly #app: string;
  readonly #credentials: Credentials | undefined;
  readonly #nonce: () => string;
  #isNamed = false;
  #isAnswered = false;

  /** @param app the application, without what is added here @param nonce makes eight hexadecimal digits */
  constructor(app: string, credentials: Credentials | undefined, nonce = () => randomBytes(4).toString('hex')) {
    this.#app = app;
    this.#credentials = credentials;
    this.#nonce = nonce;
  }

  /**
   * @param description of the server's rejection of `connect`
   * @returns the application to connect to next; undefined when the rejection has another reason
   * @throws RtmpError when authentication has failed, or is not possible
   */
  next(description: string): string | undefined {
    const module = /\bauthmod=(\w+)/.exec(description)?.[1];
    if (module === undefined || description.length > MAX_DESCRIPTION) return undefined;
    if (module !== 'adobe' && module !== 'llnw')
      throw new RtmpError(`the server asks for an authentication that Kiln does not know: ${module}`);
    if (this.#credentials === undefined)
      throw new RtmpError('the server asks for a user and a password, as in rtmp://user:password@host/application');
    const { user } = this.#credentials;
    if (/[?&]reason=(?:authfailed|nosuchuser)\b/.test(description))
      throw new RtmpError('the server rejected the user or the password');
    const named = `authmod=${module}&user=${encodeURIComponent(user)}`;
    const [, challenge] = /\?(reason=needauth\S*)/.exec(description) ?? [];
    if (challenge === undefined) {
      if (this.#isNamed) throw new RtmpError('the server asks for the user again and again');
      this.#isNamed = true;
      return this.#with(named);
    }
    if (this.#isAnswered) throw new RtmpError('the server rejected the user or the password');
    this.#isAnswered = true;
    const values = new Map(challenge.split('&').map((pair) => splitAt(pair, pair.indexOf('='))));
    const answer = module === 'adobe' ? this.#adobe(values, this.#credentials) : this.#llnw(values, this.#credentials);
    return this.#with(`${named}&${answer}`);
  }

  #adobe(values: ReadonlyMap<string, string>, { user, password }: Credentials): string {
    const opaque = values.get('opaque') ?? '';
    const asked = opaque === '' ? (values.get('challenge') ?? '') : opaque;
    const nonce = this.#nonce();
    const secret = md5(user + (values.get('salt') ?? '') + password, 'base64');
    const response = md5(secret + asked + nonce, 'base64');
    return `challenge=${nonce}&response=${response}${opaque === '' ? '' : `&opaque=${opaque}`}`;
  }

  #llnw(values: ReadonlyMap<string, string>, { user, password }: Credentials): string {
    const nonce = values.get('nonce') ?? '';
    const own = this.#nonce();
    const [path = ''] = this.#app.split('?');
    const secret = md5(`${user}:${REALM}:${password}`, 'hex');
    const method = md5(`publish:/${path.includes('/') ? path : `${path}/${DEFAULT_INSTANCE}`}`, 'hex');
    const response = md5(`${secret}:${nonce}:${FIRST}:${own}:auth:${method}`, 'hex');
    return `nonce=${nonce}&cnonce=${own}&nc=${FIRST}&response=${response}`;
  }

  #with(query: string): string {
    return `${this.#app}${this.#app.includes('?') ? '&' : '?'}${query}`;
  }
}

function md5(text: string, encoding: 'base64' | 'hex'): string {
  return createHash('md5').update(text).digest(encoding);
}

function splitAt(pair: string, at: number): [string, string] {
  return at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
}
