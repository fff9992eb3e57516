/** Any value of AMF0 or AMF3. Objects and ECMA arrays are both plain records without a prototype. */
export type AmfValue = null | undefined | boolean | number | string | Date | Buffer | AmfValue[] | AmfObject;

export interface AmfObject {
  [name: string]: AmfValue;
}

export function amfObject(): AmfObject {
  return Object.create(null) as AmfObject;
}

/** True for what came as an object or an ECMA array. */
export function isAmfObject(value: AmfValue): value is AmfObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Date) &&
    !Buffer.isBuffer(value)
  );
}
