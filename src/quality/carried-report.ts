/** Name of the query parameter with a report (CTA-5004 section 2.2). */
const PARAMETER = 'CMCD';
const START = `${PARAMETER}=`;
/** Header fields that share a report, in lower case (CTA-5004 section 2.1). */
const FIELDS = ['cmcd-object', 'cmcd-request', 'cmcd-session', 'cmcd-status'] as const;
/** Longest value of the parameter that is decoded. */
const MAX_ENCODED = 8192;

type Headers = { readonly [Name in (typeof FIELDS)[number]]?: string | string[] | undefined };

/**
 * Finds the report that a request carries in its query, or else in its header.
 * @param query without `?`
 * @returns its text; undefined where there is none; empty where it cannot be decoded
 */
export function carriedReport(query: string, headers: Headers): string | undefined {
  return (query.includes(START) ? inQuery(query) : undefined) ?? inHeaders(headers);
}

function inQuery(query: string): string | undefined {
  const pair = query.split('&').find((one) => one.startsWith(START));
  if (pair === undefined) return undefined;
  if (pair.length > MAX_ENCODED) return '';
  try {
    return decodeURIComponent(pair.slice(START.length).replaceAll('+', ' '));
  } catch {
    return '';
  }
}

function inHeaders(headers: Headers): string | undefined {
  let text: string | undefined;
  for (const field of FIELDS) {
    const value = headers[field];
    if (value === undefined || value === '') continue;
    text = text === undefined ? String(value) : `${text},${String(value)}`;
  }
  return text;
}

/** Removes a report from a query without `?`: it differs with each request, and what is asked for does not depend on it. */
export function queryWithoutReport(query: string): string {
  if (!query.includes(PARAMETER)) return query;
  return query
    .split('&')
    .filter((pair) => pair !== PARAMETER && !pair.startsWith(START))
    .join('&');
}

/** Removes a report from the query of a URL, or of a path. */
export function urlWithoutReport(url: string): string {
  const mark = url.includes(PARAMETER) ? url.indexOf('?') : -1;
  if (mark < 0) return url;
  const query = url.slice(mark + 1);
  const rest = queryWithoutReport(query);
  if (rest === query) return url;
  return rest === '' ? url.slice(0, mark) : `${url.slice(0, mark)}?${rest}`;
}
