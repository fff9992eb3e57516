import { hostFromUrl } from './address.ts';

/**
 * Pattern of names as in Server.xml: `*` is any run of characters, `?` any one; case does not matter. The time to match is
 * proportional to the text, whatever the pattern, since clients choose the text.
 * @param before regular expression that the match begins with
 */
export function wildcard(pattern: string, before = ''): RegExp {
  const [start = '', ...parts] = pattern.split(/\*+/).map(literal);
  const end = parts.pop();
  // a lookahead is not tried again elsewhere: the first place of each part is as good as any
  const middle = parts.map((part, index) => `(?=(?<part${index}>.*?${part}))\\k<part${index}>`).join('');
  return new RegExp(`^${before}${start}${middle}${end === undefined ? '' : `.*${end}`}$`, 'i');
}

/**
 * Returns a test for whether a host, without port, is one of the configured names. The brackets of IPv6 addresses in URLs are
 * optional on either side.
 */
export function hostMatcher(names: readonly string[]): (host: string) => boolean {
  const patterns = names.map((name) => wildcard(hostFromUrl(name)));
  return (host) => {
    const bare = hostFromUrl(host);
    return patterns.some((pattern) => pattern.test(bare));
  };
}

function literal(text: string): string {
  return text.replace(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('?', '.');
}
