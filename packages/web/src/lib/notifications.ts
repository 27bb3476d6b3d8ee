const KEY = "parley.notifications";

export const notificationsOn = () =>
  "Notification" in window &&
  Notification.permission === "granted" &&
  localStorage.getItem(KEY) === "on";

/** Turns notifications on or off; true if they are on afterwards. */
export async function setNotifications(on: boolean): Promise<boolean> {
  localStorage.setItem(KEY, on ? "on" : "off");
  if (!on || !("Notification" in window)) return false;
  return (await Notification.requestPermission()) === "granted";
}
