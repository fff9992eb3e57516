import type { CrossDomainsConfig } from '../config/model.ts';

const WITH_SCHEME = /^https?:\/\//i;
/** Form of host common to CrossDomains and Content-Security-Policy: with all of its subdomains or not, with a port or not. */
const HOST = /^(?:https?:\/\/)?(?:\*\.)?[a-z\d-]+(?:\.[a-z\d-]+)*(?::\d+)?$/i;

/**
 * Sites that may show the player in a frame, as `frame-ancestors` of a Content-Security-Policy: those that may play the
 * application's streams by script. Patterns that a policy cannot express are left out.
 */
export function frameAncestors(crossDomains: CrossDomainsConfig | undefined): string {
  const urls = crossDomains?.url ?? [];
  if (urls.includes('*')) return '*';
  const hosts = urls.filter((url) => HOST.test(url) && url !== 'null');
  return [
    "'self'",
    ...hosts.flatMap((url) => (WITH_SCHEME.test(url) ? [url] : [`http://${url}`, `https://${url}`])),
  ].join(' ');
}
