/** A 52-bit hash that tells tokens apart without revealing them. */
export function fingerprint(token: string): string {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let index = 0; index < token.length; index++) {
    const code = token.charCodeAt(index);
    one = Math.imul(one ^ code, 2_654_435_761);
    other = Math.imul(other ^ code, 1_597_334_677);
  }
  one =
    Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(other ^ (other >>> 13), 3_266_489_909);
  return (2 ** 20 * (one >>> 0) + ((other >>> 12) & 0xfffff)).toString(36);
}
