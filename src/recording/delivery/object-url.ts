import type { BucketSettings } from './buckets.ts';

/** URL of an object, without credentials. */
export function objectUrl({ endpoint, region, bucket, forcePathStyle }: BucketSettings, key: string): string {
  const url = new URL(endpoint ?? `https://s3.${region}.amazonaws.com`);
  const path = url.pathname.replace(/\/$/, '');
  const name = key.split('/').map(encodeURIComponent).join('/');
  if (forcePathStyle === true) return `${url.origin}${path}/${encodeURIComponent(bucket)}/${name}`;
  return `${url.protocol}//${bucket}.${url.host}${path}/${name}`;
}
